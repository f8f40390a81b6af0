#include "profiler/record/spill.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/folder_mode.hpp"
#include "base/size_signal.hpp"

namespace papaya {

using namespace trace::spill;

namespace {

constexpr std::size_t most_open = 4096;  // calls at once; of more the ends are not kept

// An event that its thread may be completing. Only an exit that is there vouches for what comes with it. Acquire:
// partners are begin() and finish(), and the count of events that is read afterwards must not be read before.
trace::Event read_event(trace::Event& event) noexcept {
  const auto read = [](auto& field) { return std::atomic_ref(field).load(std::memory_order_acquire); };
  trace::Event copy{};
  copy.commit = read(event.commit);
  copy.exit_ticks = read(event.exit_ticks);
  copy.arrival_ticks = read(event.arrival_ticks);
  copy.communicator = read(event.communicator);
  copy.call = read(event.call);
  copy.bytes = read(event.bytes);
  copy.call_site = read(event.call_site);
  copy.root = read(event.root);
  copy.collective = read(event.collective);
  copy.form = read(event.form);
  copy.algorithm = copy.exit_ticks != 0 ? read(event.algorithm) : 0;
  copy.reason = copy.exit_ticks != 0 ? read(event.reason) : 0;
  copy.thread = read(event.thread);
  copy.phase = read(event.phase);
  return copy;
}

}  // namespace

SpillFile::~SpillFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (context_ != nullptr) zstd::free_context(context_);
}

bool SpillFile::open(const std::string& path, std::string later_path, const trace::Header& record,
                     std::uint64_t limit_bytes) noexcept {
  try {
    const std::size_t raw = most_in_block * sizeof(trace::Event);
    if (zstd::is_there()) context_ = zstd::make_context();
    columns_.resize(raw / sizeof(std::uint64_t));
    block_.resize(sizeof(BlockHeader) +
                  std::max(most_in_block * sizeof(LateEvent), context_ != nullptr ? zstd::bound(raw) : raw));
    later_path_ = std::move(later_path);
  } catch (const std::bad_alloc&) {
    return false;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0) limit_bytes = std::min<std::uint64_t>(limit_bytes, limit.rlim_cur);
  std::memcpy(header_.magic, magic, sizeof magic);
  header_.version = format_version;
  header_.endian_mark = trace::endian_mark;
  header_.header_bytes = sizeof header_;
  header_.event_bytes = sizeof(trace::Event);
  header_.rank = record.rank;
  header_.ranks = record.ranks;
  header_.begin_ticks = record.begin_ticks;
  header_.begin_unix_ns = record.begin_unix_ns;
  header_.limit_bytes = limit_bytes;
  header_.checksum = checksum_of(header_);
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return false;
  set_mode_by_folder(descriptor_, path, 0644);
  if (!identity_.note(descriptor_) || !write_at(0, &header_, sizeof header_)) {
    ::unlink(path.c_str());
    ::close(descriptor_);
    descriptor_ = -1;
    return false;
  }
  offset_ = sizeof header_;
  return true;
}

void SpillFile::append(std::uint64_t first, std::span<const trace::Event> events) noexcept {
  to_columns(events, columns_.data());
  BlockHeader block{};
  block.kind = static_cast<std::uint32_t>(Kind::stretch);
  block.first = first;
  block.count = static_cast<std::uint32_t>(events.size());
  append_block(block, columns_.data(), events.size_bytes());
}

void SpillFile::append_late(std::span<const LateEvent> events) noexcept {
  BlockHeader block{};
  block.kind = static_cast<std::uint32_t>(Kind::late);
  block.count = static_cast<std::uint32_t>(events.size());
  append_block(block, events.data(), events.size_bytes());
}

void SpillFile::append_block(BlockHeader block, const void* payload, std::size_t bytes) noexcept {
  if (!takes_more()) return;
  std::byte* const stored = block_.data() + sizeof block;
  std::size_t stored_bytes = 0;
  if (context_ != nullptr)
    stored_bytes = zstd::compress(context_, stored, block_.size() - sizeof block, payload, bytes);
  const bool is_smaller = stored_bytes != 0 && stored_bytes < bytes;
  if (!is_smaller) {
    std::memcpy(stored, payload, bytes);
    stored_bytes = bytes;
  }
  block.magic = block_magic;
  block.compression = static_cast<std::uint32_t>(is_smaller ? Compression::zstd : Compression::none);
  block.bytes = static_cast<std::uint32_t>(stored_bytes);
  block.payload_checksum = crc32c(stored, stored_bytes);
  block.checksum = checksum_of(block);
  std::memcpy(block_.data(), &block, sizeof block);
  const std::size_t whole = sizeof block + stored_bytes;
  if (whole > header_.limit_bytes - std::min(offset_, header_.limit_bytes)) {
    end(State::limited, 0);
  } else if (!is_ours() || !write_at(offset_, block_.data(), whole)) {
    end(State::failed, errno);
  } else {
    offset_ += whole;
  }
}

bool SpillFile::is_ours() noexcept {
  if (identity_.is_of(descriptor_)) return true;
  descriptor_ = ::open(later_path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) return false;
  if (identity_.is_of(descriptor_)) return true;
  ::close(descriptor_);
  errno = EBADF;
  descriptor_ = -1;
  return false;
}

bool SpillFile::write_at(std::uint64_t offset, const void* from, std::size_t bytes) noexcept {
  const NoSizeSignal no_signal;
  const auto* next = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t written = pwrite(descriptor_, next, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    next += written;
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

// Nothing more is written. Blocks before this one are whole; the header says why it ends here.
void SpillFile::end(State state, int error) noexcept {
  header_.state = static_cast<std::uint32_t>(state);
  header_.error = static_cast<std::uint32_t>(error);
  header_.bytes = offset_;
  header_.checksum = checksum_of(header_);
  if (descriptor_ < 0 || !is_ours()) return;
  [[maybe_unused]] const int cut = ftruncate(descriptor_, static_cast<off_t>(offset_));
  write_at(0, &header_, sizeof header_);
}

void SpillFile::close() noexcept {
  if (takes_more()) end(State::closed, 0);
  if (descriptor_ >= 0 && is_ours()) ::close(descriptor_);
  descriptor_ = -1;
}

Spiller::Spiller(trace::Header& record, trace::Event* events) noexcept
    : record_(record),
      events_(events),
      capacity_(record.event_capacity),
      stretch_(std::min<std::uint64_t>(most_in_block, record.event_capacity / 8)),
      lag_(record.event_capacity / 2) {
  sem_init(&work_, 0, 0);
}

Spiller::~Spiller() {
  stop();
  sem_destroy(&work_);
}

bool Spiller::open(const std::string& path, std::string later_path, std::uint64_t limit_bytes) noexcept {
  try {
    copy_.resize(stretch_);
    open_.reserve(most_open);
    late_.reserve(note_capacity);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return file_.open(path, std::move(later_path), record_, limit_bytes);
}

bool Spiller::start() noexcept {
  // A signal for the program must not be taken by a thread that it does not know.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);  // of the record's own pages (failed_pages.hpp)
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
  is_running_ = pthread_create(&thread_, nullptr, run, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_running_;
}

void* Spiller::run(void* self) noexcept {
  auto& spiller = *static_cast<Spiller*>(self);
  pthread_setname_np(pthread_self(), "papaya-spill");
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
  while (!spiller.stops_.load(std::memory_order_acquire)) {
    while (sem_wait(&spiller.work_) != 0) {
    }
    spiller.spill();
  }
  spiller.spill();  // what came since, ends of calls above all: the rest is still in the ring
  return nullptr;
}

void Spiller::stop() noexcept {
  if (is_running_) {
    stops_.store(true, std::memory_order_release);  // partner: run()
    // MPI_Finalize waits for it now, and other ranks may spin. Where it may not be raised it comes to its end later.
    const sched_param none{};
    pthread_setschedparam(thread_, SCHED_OTHER, &none);
    wake();
    pthread_join(thread_, nullptr);
    is_running_ = false;
  }
  file_.close();
}

void Spiller::wake() noexcept {
  sem_post(&work_);
}

void Spiller::spill() noexcept {
  write_notes();
  while (file_.takes_more()) {
    const std::uint64_t begun = std::atomic_ref(record_.event_count).load(std::memory_order_relaxed);
    if (next_ + stretch_ + lag_ > begun) break;
    if (!is_overtaken(next_)) {
      copy_stretch(next_);
      // It may have been overwritten while it was copied.
      if (!is_overtaken(next_)) {
        file_.append(next_, copy_);
        keep_open_events(next_);
      }
    }
    next_ += stretch_;
  }
}

// The ring has come round to it, or to the stretch before: nothing orders its stores and the loads here.
bool Spiller::is_overtaken(std::uint64_t first) const noexcept {
  return std::atomic_ref(record_.event_count).load(std::memory_order_relaxed) + stretch_ > first + capacity_;
}

void Spiller::copy_stretch(std::uint64_t first) noexcept {
  for (std::uint64_t i = 0; i < stretch_; ++i) copy_[i] = read_event(events_[(first + i) & (capacity_ - 1)]);
}

void Spiller::keep_open_events(std::uint64_t first) noexcept {
  for (std::uint64_t i = 0; i < stretch_; ++i)
    if (copy_[i].exit_ticks == 0 && copy_[i].call != trace::no_call && open_.size() < most_open)
      open_.push_back({first + i, copy_[i]});
}

void Spiller::note_late(std::uint64_t number, std::uint64_t exit_ticks, std::uint32_t algorithm,
                        std::uint8_t reason) noexcept {
  std::uint64_t position = notes_begun_.load(std::memory_order_relaxed);
  do {
    // Acquire: the helper has read what the note held. Full: the event stays open.
    if (position - notes_taken_.load(std::memory_order_acquire) >= note_capacity) return;
  } while (!notes_begun_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed));
  Note& note = notes_[position % note_capacity];
  note.number = number;
  note.exit_ticks = exit_ticks;
  note.algorithm = algorithm;
  note.reason = reason;
  note.ready.store(position + 1, std::memory_order_release);  // partner: write_notes()
  wake();
}

void Spiller::write_notes() noexcept {
  late_.clear();
  for (std::uint64_t taken = notes_taken_.load(std::memory_order_relaxed); late_.size() < note_capacity; ++taken) {
    const Note& note = notes_[taken % note_capacity];
    if (note.ready.load(std::memory_order_acquire) != taken + 1) break;
    const auto open =
        std::find_if(open_.begin(), open_.end(), [&](const LateEvent& one) { return one.number == note.number; });
    if (open != open_.end()) {  // else its stretch has not been written yet, or never was
      open->event.exit_ticks = note.exit_ticks;
      open->event.algorithm = note.algorithm;
      open->event.reason = note.reason;
      if (note.exit_ticks == 0) open->event.call = trace::no_call;
      late_.push_back(*open);
      if (note.exit_ticks != 0) {
        *open = open_.back();
        open_.pop_back();
      }
    }
    notes_taken_.store(taken + 1, std::memory_order_release);  // partner: note_late()
  }
  if (!late_.empty()) file_.append_late(late_);
}

}  // namespace papaya
