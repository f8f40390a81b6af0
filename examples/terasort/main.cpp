// A distributed sort of 100-byte records, as in the sort benchmarks, with two ways to shuffle: README.md.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "plan.hpp"
#include "report.hpp"
#include "shuffle.hpp"

namespace terasort {

namespace {

constexpr std::uint64_t block = 8192;  // records that are read or written at once

std::uint64_t sum_before(std::uint64_t mine, const Job& job) {
  std::uint64_t before = 0;
  MPI_Exscan(&mine, &before, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return job.rank == 0 ? 0 : before;
}

// Rank 0 makes it before the others open it.
std::optional<File> open_output(const std::string& path, std::uint64_t records, const Job& job) {
  std::optional<File> file;
  if (path.empty()) return file;
  job.together([&] {
    if (job.rank == 0) file.emplace(File::to_create(path, records));
  });
  job.together([&] {
    if (job.rank != 0) file.emplace(File::to_write(path));
  });
  return file;
}

template <class Take>
void each_block(std::uint64_t count, Take&& take) {
  for (std::uint64_t done = 0; done < count; done += block) take(done, std::min(block, count - done));
}

Verdict validate_file(const File& file, std::uint64_t first, std::uint64_t size, const Job& job) {
  Validator validator;
  Records room;
  each_block(size, [&](std::uint64_t done, std::uint64_t count) {
    room.resize(count);
    file.read(first + done, room);
    validator.see(room);
  });
  return validator.finish(job);
}

void check(const Options& options, const Source& source, const Job& job) {
  if (options.mode == Mode::single && job.ranks > 1)
    throw Problem("Mode single sorts in one process; start it on one rank.");
  if (!options.output.empty() && source.is_file(options.output))
    throw Problem(fmt::format("{} is the input; write the sorted records to another file.", options.output));
}

void shuffle(const Task& task, Segment* segment) {
  if (task.options.mode == Mode::alltoallv) return shuffle_alltoallv(task);
  if (segment != nullptr) return shuffle_notified(task, *segment);
  Records room;
  for (std::uint64_t done = 0; done < task.source.count(); done += task.plan.chunk)
    task.collector.add(task.read(done, std::min(task.plan.chunk, task.source.count() - done), room));
}

// Merges, writes and validates what the rank has.
Verdict finish(Collector& collector, const std::optional<File>& output, const Job& job, Times& times) {
  collector.finish();
  Validator validator;
  std::uint64_t first = 0;
  if (output) {
    const Within phase(times, Phase::shuffle);
    const Waiting waiting(times);
    first = sum_before(collector.size(), job);
  }
  std::uint64_t at = first;
  collector.merge([&](std::span<const Record> records) {
    if (output) {
      const Within phase(times, Phase::write);
      output->write(at, records);
      at += records.size();
    } else {
      const Within phase(times, Phase::validate);
      validator.see(records);
    }
  });
  const Within phase(times, Phase::validate);
  return output ? validate_file(*output, first, collector.size(), job) : validator.finish(job);
}

int sort(const Options& options, const Job& job) {
  Times times;
  const double start = Times::clock();
  std::optional<Source> source;
  Plan plan;
  job.together([&] {
    source.emplace(options, job);
    check(options, *source, job);
  });
  job.together([&] { plan = make_plan(*source, options, job); });
  const std::optional<File> output = open_output(options.output, source->all(), job);
  std::optional<Collector> collector;
  job.together([&] {
    collector.emplace(shape_of(plan, options), !plan.is_in_memory, times);
    const Within phase(times, Phase::read);
    if (plan.is_in_memory && options.mode != Mode::single) source->load();
  });
  Validator input;
  if (source->is_loaded()) {
    const Within phase(times, Phase::validate);
    input.see(source->loaded());
  }
  Outcome outcome{.records = source->all()};
  const Splitters splitters(*source, options.samples, job, times);
  const std::vector<Key> bounds = splitters.bounds(bins_of(plan, options, source->count()));
  job.together([&] { collector->divide(bounds, source->count() / (bounds.size() + 1) + 1); });
  std::unique_ptr<Segment> segment;
  if (options.mode == Mode::notified) {
    const Within phase(times, Phase::set_up);
    segment = make_segment(plan, options, job);
    outcome.place = segment->place();
  }
  shuffle({*source, splitters, plan, options, job, *collector, input, times}, segment.get());
  source->release();
  outcome.verdict = finish(*collector, output, job, times);
  segment.reset();
  outcome.checksum_of_input = input.finish(job).checksum;
  outcome.seconds = Times::clock() - start;
  times.enter(Phase::other);
  const std::uint64_t size = collector->size();
  const std::uint64_t runs = collector->runs_in_files();
  MPI_Reduce(&size, &outcome.largest, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(&runs, &outcome.runs_in_files, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  report(outcome, times, options, job);
  return tell(outcome.verdict, outcome.checksum_of_input, outcome.records, job) ? 0 : 1;
}

int generate(const Options& options, const Job& job) {
  const Source source(options, job);  // nothing is read, so nothing is wrong
  const std::optional<File> file = open_output(options.output, source.all(), job);
  Records room;
  Validator validator;
  job.together([&] {
    each_block(source.count(), [&](std::uint64_t first, std::uint64_t count) {
      const std::span<const Record> records = source.get(first, count, room);
      validator.see(records);
      file->write(source.first() + first, records);
    });
  });
  const Verdict verdict = validator.finish(job);
  if (job.rank == 0) fmt::print("records: {}\nchecksum: {}\n", verdict.records, verdict.checksum);
  return 0;
}

int validate(const Options& options, const Job& job) {
  std::optional<File> file;
  std::uint64_t records = 0;
  job.together([&] {
    file.emplace(File::to_read(options.input));
    records = file->records();
  });
  const Share share = share_of(records, job);
  return tell(validate_file(*file, share.first, share.count, job), options.checksum, records, job) ? 0 : 1;
}

int run(const Options& options, const Job& job) {
  try {
    return options.command == Command::sort       ? sort(options, job)
           : options.command == Command::generate ? generate(options, job)
                                                  : validate(options, job);
  } catch (const CommonProblem& problem) {
    if (job.rank == 0) fmt::print(stderr, "terasort: {}\n", problem.what());
    return 1;
  } catch (const std::bad_alloc&) {
    abort_job("There is too little memory; set --memory to what a rank may have, and sorted runs go to files.");
  } catch (const std::exception& problem) {
    abort_job(problem.what());
  }
}

}  // namespace

}  // namespace terasort

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const terasort::Job job = terasort::Job::world();
  int code = 0;
  if (const auto options = terasort::parse(argc, argv, job.rank, code)) code = terasort::run(*options, job);
  MPI_Finalize();
  return code;
}
