//! Runs whose config is built in code, and their events.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ssn::data::DataConfig;
use ssn::eval::metrics_file::{LOSS, VALIDATION_GED};
use ssn::prelude::*;
use ssn::training::run::{ConfigSources, Event, Override, RunConfig, RunPreset, StopReason};

use crate::lab::{Lab, SHORT, train_on};

/// Freezes a config and reads it again.
fn frozen(config: &RunConfig) -> RunConfig {
    ConfigSources::frozen("config.toml".into(), toml::to_string(config).unwrap()).unwrap()
}

#[test]
fn every_preset_is_the_same_in_code_and_in_a_file() {
    let lab = Lab::new([1, 16, 16], 2);
    let data = lab.path("data");
    for preset in RunPreset::ALL {
        let mut config = RunConfig::for_data(&data, preset).unwrap();
        config.data.split.file = lab.path("split.toml");
        assert_eq!(frozen(&config), config, "{}", preset.name());
        let typed = RunConfig::preset(preset, config.data.clone()).unwrap();
        let text = toml::to_string(&toml::Table::from_iter([(
            "data".to_owned(),
            toml::Value::try_from(&config.data).unwrap(),
        )]))
        .unwrap();
        let file = lab.path("typed.toml");
        fs::write(&file, format!("preset = \"{}\"\n{text}", preset.name())).unwrap();
        assert_eq!(RunConfig::from_file(&file).unwrap(), typed, "{}", preset.name());
    }
    let missing = RunConfig::from_file(lab.path("no.toml")).unwrap_err().to_string();
    assert!(missing.contains("no.toml"), "{missing}");
}

#[test]
fn a_run_built_in_code_is_that_of_the_command() {
    let lab = Lab::new([1, 16, 16], 2);
    let settings = || SHORT.into_iter().chain(["loss.likelihood_steps=1"]);
    let by_command = lab.run("command", "small", settings());
    train_on(1, &by_command, None).unwrap();
    let mut sources = ConfigSources::for_data(&lab.path("data"), Some(RunPreset::Small)).unwrap();
    sources.overrides = settings().map(|setting| Override::parse(setting).unwrap()).collect();
    let config = sources.config().unwrap();
    let run = |folder: &Path| {
        tch::set_num_threads(1);
        Training::new(config.clone(), folder).device(DeviceChoice::Cpu).workers(0)
    };
    let out = lab.path("typed");
    assert_eq!(run(&out).start(Control::default()).unwrap().ended, StopReason::Finished);
    let read = |run: &Path, name: &str| fs::read_to_string(run.join(name)).unwrap();
    for name in ["config.toml", "metrics.csv"] {
        let expected = read(&by_command.out, name).replace("command", "typed");
        assert_eq!(read(&out, name), expected, "{name}");
    }
    let taken = run(&out).start(Control::default()).unwrap_err();
    assert_eq!(taken.kind, ErrorKind::Usage);
    let mut wrong = config.clone();
    wrong.training.log_every = 0;
    let refused = Training::new(wrong, lab.path("wrong")).start(Control::default()).unwrap_err();
    assert!(refused.to_string().contains("training.log_every is 0"), "{refused}");
    assert!(DataConfig::read(&out.join("config.toml")).is_ok());
}

#[test]
fn events_have_the_numbers_of_the_files() {
    let lab = Lab::new([1, 16, 16], 2);
    let settings = SHORT.into_iter().chain(["loss.likelihood_steps=1", "training.log_every=2"]);
    let config = lab.run("run", "small", settings);
    tch::set_num_threads(1);
    let mut events = vec![];
    let stop = AtomicBool::new(false);
    let listen = |events: &mut Vec<Event>, event: &Event| {
        if matches!(event, Event::Saved { step: 2, .. }) {
            stop.store(true, Ordering::Relaxed);
        }
        events.push(event.clone());
    };
    let control = Control { stop: &stop, ..Control::default() };
    let trained = Training::from_config(&config).on_event(|event| listen(&mut events, event)).start(control);
    assert_eq!(trained.unwrap().ended, StopReason::Stopped);
    stop.store(false, Ordering::Relaxed);
    let rest = Training::resume(&config.out).device(DeviceChoice::Cpu).workers(0);
    rest.on_event(|event| listen(&mut events, event)).start(Control::default()).unwrap().outcome().unwrap();

    let steps: Vec<u64> = events
        .iter()
        .filter_map(|event| if let Event::Step(step) = event { Some(step.step) } else { None })
        .collect();
    assert_eq!(steps, [1, 2, 3, 4], "a step each");
    let losses = |range: std::ops::Range<u64>| {
        let losses = events.iter().filter_map(|event| match event {
            Event::Step(step) if range.contains(&step.step) => Some(step.loss),
            _ => None,
        });
        losses.sum::<f64>() / (range.end - range.start) as f64
    };
    let text = fs::read_to_string(config.out.join("metrics.csv")).unwrap();
    let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let cell = |step: u64, column: &str| {
        let place = head.iter().position(|name| *name == column).unwrap();
        let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        let mut found =
            rows.filter(|row| row[0] == step.to_string()).filter_map(|row| row[place].parse::<f64>().ok());
        found.next().unwrap()
    };
    let (mut rows, mut validations) = (0, 0);
    for event in &events {
        match event {
            Event::Row { step, means } => {
                rows += 1;
                assert_eq!(means.loss, Some(losses(step - 1..step + 1)));
                assert_eq!(means.loss, Some(cell(*step, LOSS)));
            }
            Event::Validated { step, scores, .. } => {
                validations += 1;
                assert_eq!(scores.ged, Some(cell(*step, VALIDATION_GED)));
            }
            _ => {}
        }
    }
    assert_eq!(rows, 2);
    assert!(validations >= 2, "{validations} validations");
    assert!(matches!(events[0], Event::Began { steps: 4, done: 0, .. }), "{:?}", events[0]);
    assert!(events.contains(&Event::Resumed { step: 2 }));
    assert!(matches!(events.last(), Some(Event::Ended { reason: StopReason::Finished, steps: 4, .. })));
    let line = serde_json::to_string(&events[1]).unwrap();
    assert!(line.starts_with(r#"{"event":"step","step":1,"loss":"#), "{line}");
}
