//! `ssn view`: what is served, what is written, and what is refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use ssn_eval::{About, PredictionKind, Predictions};
use tempfile::TempDir;

use crate::common::{Prediction, limited, model, picture, ssn, told};

/// A dataset `set/` of pictures of 8 × 8 with two raters, and predictions of them.
fn folder(cases: &[&'static str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut index = "id,image,seg_0,seg_1\n".to_owned();
    for id in cases {
        for (ending, step) in [("", 3), ("_0", 0), ("_1", 1)] {
            let value = |i: usize| if step == 3 { (i * step) as u8 } else { u8::from(i < 20 + step) };
            picture(&folder.path().join(format!("set/{id}{ending}.png")), value);
        }
        index += &format!("{id},{id}.png,{id}_0.png,{id}_1.png\n");
    }
    std::fs::write(folder.path().join("set/index.csv"), index).unwrap();
    let dataset = "set/index.csv".to_owned();
    let about = About {
        model: model(),
        seed: 0,
        dataset,
        split: "all".to_owned(),
        images: None,
        labels: None,
        labels_only: false,
    };
    let predictions = Predictions::create(&folder.path().join("predictions"), about).unwrap();
    for (number, id) in cases.iter().enumerate() {
        Prediction { kind: PredictionKind::Stochastic, ..Prediction::picture(id, number as u64) }
            .write(&predictions.distribution_path(id));
    }
    folder
}

/// `ssn view` as it runs.
struct Served {
    child: Child,
    /// What `--json` told.
    about: Value,
}

impl Served {
    fn start(folder: &TempDir, arguments: &[&str]) -> Self {
        Self::start_with(folder, &[arguments, &["--no-open"]].concat(), &[])
    }

    fn start_with(folder: &TempDir, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssn"));
        Self::run(command.envs(environment.iter().copied()), folder, arguments)
    }

    fn run(command: &mut Command, folder: &TempDir, arguments: &[&str]) -> Self {
        let mut child = command
            .args(["view", "--json"])
            .args(arguments)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut text = String::new();
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
        while !text.ends_with("}\n") {
            assert!(lines.read_line(&mut text).unwrap() > 0, "it ended: {text}");
        }
        Self { about: serde_json::from_str(&text).unwrap(), child }
    }

    /// The answer to a request with the token.
    fn ask(&self, path: &str) -> Vec<u8> {
        let (port, token) = (self.about["port"].as_u64().unwrap(), self.about["token"].as_str().unwrap());
        let mut stream = TcpStream::connect(("127.0.0.1", port as u16)).unwrap();
        // A server that never answers fails the test instead of holding it up.
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
        let mut answer = vec![];
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    /// The body of an answer that must be good.
    fn get(&self, path: &str) -> Vec<u8> {
        let mut answer = self.ask(path);
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        answer.split_off(end + 4)
    }

    fn list(&self) -> Value {
        serde_json::from_slice(&self.get("/api/cases")).unwrap()
    }

    /// The path of the package of a case.
    fn path(&self, number: usize) -> String {
        format!("/api/cases/{}", self.list()["cases"][number]["id"].as_str().unwrap())
    }

    /// The header of the package of a case.
    fn header(&self, number: usize) -> Value {
        header(&self.get(&self.path(number)))
    }

    /// The answer in place of the package of a case, which must say why there is none.
    fn refusal(&self, number: usize) -> String {
        let answer = String::from_utf8(self.ask(&self.path(number))).unwrap();
        assert!(answer.starts_with("HTTP/1.1 422 ") && answer.contains("{\"error\":\""), "{answer}");
        answer
    }

    /// Ends it as Ctrl-C does; gives the exit code and standard error.
    fn stop(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (self.child.wait().unwrap().code(), told)
    }
}

/// `ssn view` that starts a browser: a script that writes down what it was started with.
#[test]
fn the_browser_is_started_with_a_file_that_only_the_user_reads() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder(&["a"]);
    let (programs, home) = (folder.path().join("programs"), folder.path().join("home"));
    for path in [&programs, &home] {
        std::fs::create_dir(path).unwrap();
    }
    let script = programs.join("xdg-open");
    let text = "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$HOME/asked\"\nmv \"$HOME/asked\" \"$HOME/started\"\n";
    ssn_testing::process::write_program(&script, text.as_bytes());
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let environment = [("PATH", path.as_str()), ("HOME", home.to_str().unwrap()), ("DISPLAY", ":0")];
    let started = || {
        let look = || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            std::fs::read_to_string(home.join("started")).ok()
        };
        let found = std::iter::repeat_with(look).take(400).flatten().next();
        std::fs::remove_file(home.join("started")).unwrap();
        found.unwrap()
    };
    let start = || {
        let served = Served::start_with(&folder, &["predictions"], &environment);
        (served, started())
    };
    let (served, started) = start();
    let page = std::path::PathBuf::from(started.trim_end());
    assert!(!started.contains("http") && page.starts_with(home.join("ssn-view-opening")), "{started}");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&page), mode(page.parent().unwrap())), (0o600, 0o700));
    let text = std::fs::read_to_string(&page).unwrap();
    let (_, rest) = text.split_once("url=http://127.0.0.1:").unwrap();
    let (address, _) = rest.split_once('"').unwrap();
    let (_, code) = address.split_once("/open/").unwrap();
    assert!(!started.contains(code) && !text.contains(served.about["token"].as_str().unwrap()));

    let answer = served.ask(&format!("/open/{code}"));
    assert!(answer.starts_with(b"HTTP/1.1 303 "), "{}", String::from_utf8_lossy(&answer));
    assert!(!home.join("ssn-view-opening").exists(), "the page is removed once it was used");
    assert_eq!(served.stop(), (Some(0), String::new()));

    // One that is never used goes with the server.
    let (served, _) = start();
    assert!(home.join("ssn-view-opening").exists());
    served.stop();
    assert!(!home.join("ssn-view-opening").exists());
}

fn header(package: &[u8]) -> Value {
    let length = u32::from_le_bytes(package[8..12].try_into().unwrap()) as usize;
    serde_json::from_slice(&package[16..16 + length]).unwrap()
}

#[test]
fn help() {
    insta::assert_snapshot!(told(&ssn(&tempfile::tempdir().unwrap(), &["view", "--help"])));
}

#[test]
fn a_folder_is_served_until_it_is_stopped() {
    let folder = folder(&["a", "b", "c"]);
    let served = Served::start(&folder, &["predictions", "--seed", "7"]);
    let url = format!(
        "http://127.0.0.1:{}/#token={}",
        served.about["port"],
        served.about["token"].as_str().unwrap()
    );
    assert_eq!(served.about["url"], url);
    assert!(served.get("/").starts_with(b"<!doctype html>"));
    let list = served.list();
    assert_eq!((&list["title"], &list["cases"][2]["name"]), (&"predictions".into(), &"c".into()));
    let header = served.header(1);
    assert_eq!((&header["name"], &header["seed"]), (&"b".into(), &"7".into()));
    assert_eq!(header["raters"], serde_json::json!(["rater 0", "rater 1"]));
    assert_eq!(header["channels"][0]["name"], "image");
    assert_eq!(header["sections"]["image"]["type"], "u8");
    assert_eq!(served.stop(), (Some(0), String::new()));
}

#[test]
fn a_file_is_served_with_what_is_beside_it() {
    let folder = folder(&["a", "b"]);
    let served = Served::start(&folder, &["predictions/b.ssn.safetensors"]);
    let list = served.list();
    assert_eq!(list["cases"].as_array().unwrap().len(), 1);
    assert_eq!(served.header(0)["raters"].as_array().unwrap().len(), 2);
    served.stop();
    // Without its folder, it does not say what it is of.
    std::fs::rename(
        folder.path().join("predictions/b.ssn.safetensors"),
        folder.path().join("b.ssn.safetensors"),
    )
    .unwrap();
    let served = Served::start(&folder, &["b.ssn.safetensors"]);
    assert_eq!(served.header(0)["channels"], serde_json::json!([]));
    let expected = "Images and raters are left out: the predictions do not say what they are of. Name the dataset with \
                    --data.\n";
    assert_eq!(served.stop(), (Some(0), expected.to_owned()));
    let served = Served::start(&folder, &["b.ssn.safetensors", "--data", "set/index.csv"]);
    assert_eq!(served.header(0)["raters"].as_array().unwrap().len(), 2);
    assert_eq!(served.stop(), (Some(0), String::new()));
}

#[test]
fn cases_that_the_dataset_lacks_are_shown_alone() {
    let folder = folder(&["a", "b"]);
    let index = folder.path().join("set/index.csv");
    let text = std::fs::read_to_string(&index).unwrap();
    std::fs::write(&index, text.lines().take(2).collect::<Vec<_>>().join("\n")).unwrap();
    let served = Served::start(&folder, &["predictions"]);
    let raters = [0, 1].map(|number| served.header(number)["raters"].as_array().unwrap().len());
    assert_eq!(raters, [2, 0]);
    let (code, told) = served.stop();
    assert_eq!(code, Some(0));
    assert!(told.starts_with("1 of 2 cases are not in set/index.csv"), "{told}");
}

#[test]
fn a_file_works_alone() {
    let folder = folder(&["a", "b", "c"]);
    let output = ssn(
        &folder,
        &["view", "predictions", "--export", "cases.html", "--case", "c", "--case", "a", "--quiet"],
    );
    assert!(output.status.success(), "{}", told(&output));
    let html = std::fs::read_to_string(folder.path().join("cases.html")).unwrap();
    let names: Vec<&str> =
        html.split("data-name=\"").skip(1).map(|part| part.split('"').next().unwrap()).collect();
    assert_eq!(names, ["a", "c"], "in the order of the folder");
    let size = format!(
        "cases.html ({:.1} MiB) holds 2 cases; open it in a browser\n",
        html.len() as f64 / 1048576.0
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), size);
    let again = ssn(&folder, &["view", "predictions", "--export", "cases.html", "--overwrite", "--json"]);
    let json: Value = serde_json::from_slice(&again.stdout).unwrap();
    let bytes = std::fs::metadata(folder.path().join("cases.html")).unwrap().len();
    assert_eq!(
        (&json["file"], &json["cases"], &json["bytes"]),
        (&"cases.html".into(), &3.into(), &bytes.into())
    );
}

#[test]
fn scores_of_an_evaluation_are_listed_and_packed() {
    let folder = folder(&["a", "b"]);
    let served = Served::start(&folder, &["predictions"]);
    let list = served.list();
    assert_eq!(
        (&list["cases"][0]["scores"], &served.header(0)["scores"]),
        (&Value::Null, &serde_json::json!([]))
    );
    served.stop();
    assert_eq!(ssn(&folder, &["evaluate", "predictions", "--samples", "8"]).status.code(), Some(0));
    let csv = std::fs::read_to_string(folder.path().join("predictions/evaluation/cases.csv")).unwrap();
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (keys, row) = (rows.next().unwrap(), rows.nth(1).unwrap());
    let cell = |key: &str| row[keys.iter().position(|known| *known == key).unwrap()].parse::<f64>().unwrap();
    let served = Served::start(&folder, &["predictions/b.ssn.safetensors"]);
    let list = served.list();
    let scores = &list["cases"][0]["scores"];
    let dice = keys.iter().rfind(|key| key.starts_with("dsc ")).unwrap();
    for (name, key) in [("ged2", "ged2_8"), ("dsc", dice), ("sample_diversity", "sample_diversity")] {
        assert_eq!(scores[name].as_f64().unwrap(), cell(key), "{name}");
    }
    let column =
        |name: &str| serde_json::json!({ "key": name, "name": "DSC %", "factor": 100.0, "digits": 1 });
    let found = list["columns"].as_array().unwrap().iter().find(|column| column["key"] == "dsc").unwrap();
    for (field, value) in column("dsc").as_object().unwrap() {
        assert_eq!(&found[field], value, "{field}");
    }
    let table = served.header(0)["scores"].clone();
    let ged = serde_json::json!({ "title": "GED², 8 samples", "value": format!("{:.3}", cell("ged2_8")) });
    let rows = table.as_array().unwrap();
    assert!(rows.contains(&ged), "{table}");
    assert!(!rows.iter().any(|row| row["title"] == "GED², 4 samples"), "{table}");
    served.stop();
    let file = folder.path().join("cases.html");
    assert_eq!(ssn(&folder, &["view", "predictions", "--export", "cases.html"]).status.code(), Some(0));
    let html = std::fs::read_to_string(file).unwrap();
    assert!(html.contains(&format!("&quot;ged2&quot;:{},", cell("ged2_8"))), "{html:.3000}");
}

#[test]
fn what_cannot_be_shown_is_said() {
    let folder = folder(&["case1", "case2"]);
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("empty")).unwrap();
    std::fs::write(path("notes.txt"), "these are notes, and no distribution at all").unwrap();
    std::fs::write(path("there.html"), "").unwrap();
    std::fs::create_dir(path("damaged")).unwrap();
    let mut bytes = std::fs::read(path("predictions/case1.ssn.safetensors")).unwrap();
    bytes.truncate(bytes.len() - 10);
    std::fs::write(path("damaged/case1.ssn.safetensors"), bytes).unwrap();
    let attempts: [&[&str]; 12] = [
        &["absent"],
        &["empty"],
        &["notes.txt"],
        &["damaged"],
        &["predictions", "--case", "case3"],
        &["predictions", "--case", "liver"],
        &["predictions", "--data", "absent.csv"],
        &["predictions", "--export", "there.html"],
        &["predictions", "--export", "x.html", "--port", "80"],
        &["predictions", "--overwrite"],
        &["predictions", "--host", "192.0.2.1"],
        &["predictions", "--host", "0.0.0.0"],
    ];
    let all: Vec<String> =
        attempts.iter().map(|arguments| told(&ssn(&folder, &[&["view"], *arguments].concat()))).collect();
    insta::assert_snapshot!("refusals", all.join("\n"));
}

/// Small files that claim images of gigabytes, beside a good one, while the server has little memory.
#[test]
fn claims_of_size_do_not_end_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [[2040, 2040, 2040], [1000, 1000, 1999], [1, 8, (1 << 30) - 1], [1, 8, 8]];
    for (size, id) in sizes.into_iter().zip(["a", "b", "c", "good"]) {
        let path = folder.path().join(format!("{id}.ssn.safetensors"));
        Prediction { size, ..Prediction::picture(id, 0) }.write(&path);
    }
    let arguments = [folder.path().to_str().unwrap(), "--no-open"];
    let served = Served::run(&mut limited(2 << 20), &folder, &arguments);
    for number in [0, 1, 2, 1, 0] {
        served.refusal(number);
    }
    assert_eq!(served.header(3)["name"], "good");
    assert_eq!(served.stop().0, Some(0));
}

/// A pipe that nobody writes to, in place of a file that was there when the server started.
#[test]
fn a_pipe_does_not_hold_up_the_server() {
    let folder = folder(&["a", "b"]);
    let served = Served::start(&folder, &["predictions"]);
    let pipe = folder.path().join("predictions/a.ssn.safetensors");
    std::fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let answer = served.refusal(0);
    assert!(answer.contains("no plain file"), "{answer}");
    assert_eq!(served.header(1)["name"], "b");
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_port_in_use_is_said() {
    let folder = folder(&["a"]);
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = ssn(&folder, &["view", "predictions", "--no-open", "--port", &port]);
    let expected = format!(
        "exit 2\nerror: port {port} of 127.0.0.1 is in use; choose another with --port, or leave it out for any free one\n"
    );
    assert_eq!(told(&output), expected);
}

#[test]
fn a_case_that_cannot_be_read_is_told_to_the_page() {
    let folder = folder(&["a", "b"]);
    let served = Served::start(&folder, &["predictions"]);
    // The header was read when the server started; what follows it is damaged now.
    let path = folder.path().join("predictions/a.ssn.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let answer = served.refusal(0);
    assert!(answer.contains("its SHA-256 differs"), "{answer}");
    assert_eq!(served.header(1)["name"], "b");
    let (_, told) = served.stop();
    assert!(told.starts_with("error: ") && told.contains("its SHA-256 differs"), "{told}");
}
