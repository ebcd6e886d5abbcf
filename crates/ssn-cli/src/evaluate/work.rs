//! Scoring cases, several at once where memory allows it, and collecting what was scored before.

use ssn_core::LabelMap;
use ssn_data::parallel::{self, MemoryMeter, unwatched};
use ssn_data::{Shard, ShardProgress};
use ssn_eval::evaluation::{Record, key};
use ssn_eval::scores::{memory, score};
use ssn_eval::{DistributionFile, Evaluation, ScoreConfig, Scored, Settings};
use ssn_io::Limits;

use super::folder::Folder;
use super::plan::{Job, Plan};
use super::{Evaluated, raters};
use crate::exit::{Exit, Failure};
use crate::predictions::failure;
use crate::progress::Progress;

/// The cases of an evaluation, how they are scored, and where the scores go.
pub(super) struct Work {
    pub(super) plan: Plan,
    pub(super) settings: Settings,
    pub(super) folder: Folder,
}

impl Work {
    /// Scores those of some cases that are not scored yet, or all of them `again`.
    pub(super) fn score(&self, cases: &[usize], again: bool, quiet: bool) -> Result<Vec<Scored>, Failure> {
        let progress = Progress::new(cases.len(), "cases", quiet);
        let scored = self.each(cases, &|done| progress.reached(done), |job, meter| {
            let (raters, key) = self.raters(job)?;
            let (path, config) = (self.folder.record(job.found.id()), &self.settings.scores);
            if let Some(record) = Record::read(&path, &key, job.found.id()).filter(|_| !again) {
                return Ok(record.scored);
            }
            meter.saw_all(memory(&job.found.header, raters.len(), config));
            let scored = score_one(job, &raters, config)?;
            let record = Record { key, scored };
            record.write(&path).map_err(failure)?;
            Ok(record.scored)
        });
        progress.finish();
        scored
    }

    /// The scores of all cases, if all shards have left theirs.
    pub(super) fn collect(&self, shard: Shard) -> Result<Result<Vec<Scored>, ShardProgress>, Failure> {
        let jobs = &self.plan.jobs;
        // Labels take time to read: only once every case has a file.
        let is_there = |index: usize| self.folder.record(jobs[index].found.id()).is_file();
        if let Some(waiting) = shard.waiting(jobs.len(), is_there) {
            return Ok(Err(waiting));
        }
        let all: Vec<usize> = (0..jobs.len()).collect();
        let found = self.each(&all, &unwatched, |job, _| {
            let (id, (_, key)) = (job.found.id(), self.raters(job)?);
            Ok(Record::read(&self.folder.record(id), &key, id).map(|record| record.scored))
        })?;
        Ok(match shard.waiting(jobs.len(), |index| found[index].is_some()) {
            Some(waiting) => Err(waiting),
            None => Ok(found.into_iter().flatten().collect()),
        })
    }

    /// Writes the files of the evaluation.
    pub(super) fn finish(self, cases: Vec<Scored>) -> Result<Evaluated, Failure> {
        let Self { plan, settings, folder } = self;
        let evaluation = Evaluation::new(settings, &cases, plan.missing).map_err(failure)?;
        folder.write(&evaluation, &cases)?;
        Ok(Evaluated { evaluation, cases, cases_csv: folder.cases_csv() })
    }

    /// The labels of a case's raters, and the key of its scores. Labels come first: scores of labels that were corrected
    /// since are no longer theirs.
    fn raters(&self, job: &Job) -> Result<(Vec<LabelMap>, String), Failure> {
        let raters = raters::load(&self.plan.dataset, job)?;
        let key = key(&self.settings.scores, &job.found.header.sha256, &raters).map_err(failure)?;
        Ok((raters, key))
    }

    /// Something of each of some cases, or the first failure.
    fn each<T: Send>(
        &self,
        cases: &[usize],
        progress: parallel::Progress<'_>,
        work: impl Fn(&Job, &MemoryMeter) -> Result<T, Failure> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let job = |number: usize| &self.plan.jobs[cases[number]];
        let results = parallel::map(cases.len(), progress, |number, meter| work(job(number), meter));
        let one = |(number, result): (usize, Result<Result<T, Failure>, String>)| match result {
            Ok(result) => result,
            Err(panic) => {
                let id = job(number).found.id();
                let message = format!("case {id}: the program failed: {panic}; please report this");
                Err(Failure::new(Exit::Internal, message))
            }
        };
        results.into_iter().enumerate().map(one).collect()
    }
}

fn score_one(job: &Job, raters: &[LabelMap], config: &ScoreConfig) -> Result<Scored, Failure> {
    let file = DistributionFile::read(&job.found.path, &Limits::default()).map_err(failure)?;
    let scores = score(&file, raters, config).map_err(failure)?;
    Ok(Scored { id: job.found.id().to_owned(), scores })
}
