// usage: delay_line DELAY_NS RATE_BITS_PER_SECOND BUFFER_BYTES PID...
// The wires and the switch of the cluster in a box where the kernel has no netem. Packets that reach a node
// stop in the kernel's netfilter queue 0 of that node's network namespace (an NFQUEUE rule of ./box puts them
// there). This program is told of each, and lets it pass when a network would have delivered it:
//
//   the sender's link sends one packet after the other at the rate; the first bit arrives DELAY later; the
//   receiver's link, of the same rate, takes one packet after the other (cut-through: an empty network costs
//   size / rate once). Of what waits for a receiver's link no more than BUFFER_BYTES are kept, the rest is
//   dropped and counted.
//
// Only a header of each packet is copied, the packet itself stays in the kernel, 64 KiB at a time. Two
// wake-ups for a packet: when it comes and when it is due. One that is late by d adds d to the delay; so this
// runs at real-time priority where permitted.
//
// Prints "ready" once every node's queue is bound. On SIGTERM prints the packets it dropped, if any, and
// ends.
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::size_t header_bytes = sizeof(iphdr);
constexpr std::uint32_t packets_kept = 65536;  // by the kernel, for each node
constexpr std::int64_t oldest_ns = 10'000'000;
constexpr int messages_at_once = 32;
constexpr std::size_t message_bytes = 1024;  // of one packet's description

volatile std::sig_atomic_t ended = 0;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "delay_line: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

std::int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * second_ns + now.tv_nsec;
}

// While such a socket is open the kernel notes of each packet when it came.
void note_arrivals() {
  const int on = 1;
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0 || setsockopt(any, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0) fail("time stamps");
}

// How late a sleep ends, of which a quarter of the sleeps end sooner. In a virtual machine this is 20 us.
class Lateness {
 public:
  std::int64_t ns() const { return ns_; }
  void add(std::int64_t measured_ns) {
    ns_ += measured_ns < ns_ ? -step_ns : step_ns / 3;
    ns_ = std::clamp<std::int64_t>(ns_, 0, most_ns);
  }

 private:
  static constexpr std::int64_t step_ns = 300;
  static constexpr std::int64_t most_ns = 100'000;
  std::int64_t ns_ = 0;
};

struct Held {
  std::uint32_t id;
  std::int64_t due_ns;
};

// One node's receiving side.
struct Port {
  mnl_socket* socket;
  std::deque<Held> held;  // due in this order, for the link takes one after the other
  std::int64_t link_free_ns = 0;
  std::int64_t dropped = 0;
};

class Network {
 public:
  Network(std::int64_t delay_ns, std::int64_t bits_per_second, std::int64_t buffer_bytes)
      : delay_ns_(delay_ns), bits_per_second_(bits_per_second), buffer_ns_(duration_ns(buffer_bytes)) {}

  // Binds queue 0 of the network namespace of process `pid`.
  void add(const std::string& pid);
  void run();
  std::int64_t dropped() const {
    std::int64_t sum = 0;
    for (const Port& port : ports_) sum += port.dropped;
    return sum;
  }

 private:
  std::int64_t duration_ns(std::int64_t bytes) const {
    return bits_per_second_ == 0
               ? 0
               : static_cast<std::int64_t>(static_cast<double>(bytes) * 8e9 / static_cast<double>(bits_per_second_));
  }
  void receive(Port& port);
  void take(Port& port, const nlmsghdr* message);
  void wait();
  static void verdict(const Port& port, int type, std::uint32_t id, std::uint32_t what);
  static void release(Port& port, std::int64_t now);

  std::int64_t delay_ns_;
  std::int64_t bits_per_second_;  // 0: no limit
  std::int64_t buffer_ns_;        // how long the receiver's link needs for a full buffer
  Lateness lateness_;
  std::vector<pollfd> sockets_;
  std::vector<Port> ports_;
  std::array<std::int64_t, 256> sender_free_ns_{};  // by the last byte of its address
};

nlmsghdr* header(char* buffer, int type, int flags) {
  nlmsghdr* message = mnl_nlmsg_put_header(buffer);
  message->nlmsg_type = static_cast<std::uint16_t>((NFNL_SUBSYS_QUEUE << 8) | type);
  message->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  auto* queue = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(message, sizeof(nfgenmsg)));
  queue->nfgen_family = AF_UNSPEC;
  queue->version = NFNETLINK_V0;
  queue->res_id = htons(0);
  return message;
}

// Sends and waits for the kernel's answer.
void configure(mnl_socket* socket, const nlmsghdr* message, const char* what) {
  std::array<char, 8192> answer;
  if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0) fail(what);
  const auto bytes = mnl_socket_recvfrom(socket, answer.data(), answer.size());
  if (bytes < 0 || mnl_cb_run(answer.data(), static_cast<std::size_t>(bytes), 0, mnl_socket_get_portid(socket), nullptr,
                              nullptr) < 0)
    fail(what);
}

void Network::add(const std::string& pid) {
  const int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  const int other = open(("/proc/" + pid + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
  if (own < 0 || other < 0 || setns(other, CLONE_NEWNET) != 0) fail("network namespace of process " + pid);
  mnl_socket* socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
  if (socket == nullptr || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) fail("netfilter's socket");
  if (setns(own, CLONE_NEWNET) != 0) fail("own network namespace");
  close(own);
  close(other);

  std::array<char, 8192> buffer;
  nlmsghdr* message = header(buffer.data(), NFQNL_MSG_CONFIG, NLM_F_ACK);
  nfqnl_msg_config_cmd bind{};
  bind.command = NFQNL_CFG_CMD_BIND;
  mnl_attr_put(message, NFQA_CFG_CMD, sizeof bind, &bind);
  configure(socket, message, "netfilter's queue");

  message = header(buffer.data(), NFQNL_MSG_CONFIG, NLM_F_ACK);
  nfqnl_msg_config_params copied{};
  copied.copy_mode = NFQNL_COPY_PACKET;
  copied.copy_range = htonl(header_bytes);
  mnl_attr_put(message, NFQA_CFG_PARAMS, sizeof copied, &copied);
  mnl_attr_put_u32(message, NFQA_CFG_QUEUE_MAXLEN, htonl(packets_kept));
  // Large packets whole, without their checksum worked out.
  mnl_attr_put_u32(message, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_GSO));
  mnl_attr_put_u32(message, NFQA_CFG_MASK, htonl(NFQA_CFG_F_GSO));
  configure(socket, message, "netfilter's queue");

  const int descriptor = mnl_socket_get_fd(socket);
  const int bytes = 32 << 20;
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  const int on = 1;
  setsockopt(descriptor, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof on);
  fcntl(descriptor, F_SETFL, O_NONBLOCK);
  ports_.push_back({socket, {}});
  sockets_.push_back({descriptor, POLLIN, 0});
}

void Network::verdict(const Port& port, int type, std::uint32_t id, std::uint32_t what) {
  std::array<char, 256> buffer;
  nlmsghdr* message = header(buffer.data(), type, 0);
  nfqnl_msg_verdict_hdr answer{};
  answer.verdict = htonl(what);
  answer.id = htonl(id);
  mnl_attr_put(message, NFQA_VERDICT_HDR, sizeof answer, &answer);
  // A node that is gone has no packets left, and nothing is lost.
  mnl_socket_sendto(port.socket, message, message->nlmsg_len);
}

void Network::take(Port& port, const nlmsghdr* message) {
  if (message->nlmsg_type != ((NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_PACKET)) return;
  std::uint32_t id = 0;
  std::uint32_t bytes = 0;
  unsigned sender = 0;
  std::int64_t age_ns = 0;
  const auto* attribute = static_cast<const nlattr*>(mnl_nlmsg_get_payload_offset(message, sizeof(nfgenmsg)));
  const auto* end = static_cast<const char*>(mnl_nlmsg_get_payload_tail(message));
  for (; mnl_attr_ok(attribute, static_cast<int>(end - reinterpret_cast<const char*>(attribute)));
       attribute = mnl_attr_next(attribute)) {
    const void* payload = mnl_attr_get_payload(attribute);
    switch (mnl_attr_get_type(attribute)) {
      case NFQA_PACKET_HDR: {
        nfqnl_msg_packet_hdr packet;
        std::memcpy(&packet, payload, sizeof packet);
        id = ntohl(packet.packet_id);
        break;
      }
      case NFQA_CAP_LEN:  // the whole packet's, where less was copied
        bytes = ntohl(mnl_attr_get_u32(attribute));
        break;
      case NFQA_TIMESTAMP: {
        nfqnl_msg_packet_timestamp came;
        std::memcpy(&came, payload, sizeof came);
        age_ns = now_ns(CLOCK_REALTIME) - static_cast<std::int64_t>(be64toh(came.sec)) * second_ns -
                 static_cast<std::int64_t>(be64toh(came.usec)) * 1000;
        break;
      }
      case NFQA_PAYLOAD: {
        iphdr packet{};
        std::memcpy(&packet, payload, std::min<std::size_t>(sizeof packet, mnl_attr_get_payload_len(attribute)));
        sender = ntohl(packet.saddr) & 0xff;
        if (bytes == 0) bytes = mnl_attr_get_payload_len(attribute);
        break;
      }
      default:
        break;
    }
  }
  const std::int64_t sending_ns = duration_ns(bytes);
  std::int64_t& sender_free_ns = sender_free_ns_[sender];
  // Older than this it cannot be: then somebody has set the clock.
  const std::int64_t came_ns = now_ns() - std::clamp<std::int64_t>(age_ns, 0, oldest_ns);
  const std::int64_t sent_ns = std::max(came_ns, sender_free_ns);
  sender_free_ns = sent_ns + sending_ns;
  const std::int64_t arrives_ns = sent_ns + delay_ns_;
  const std::int64_t taken_ns = std::max(arrives_ns, port.link_free_ns);
  if (taken_ns - arrives_ns > buffer_ns_) {
    ++port.dropped;
    verdict(port, NFQNL_MSG_VERDICT, id, NF_DROP);
    return;
  }
  port.link_free_ns = taken_ns + sending_ns;
  port.held.push_back({id, port.link_free_ns});
}

void Network::receive(Port& port) {
  static std::array<std::array<char, message_bytes>, messages_at_once> buffers;
  std::array<iovec, messages_at_once> parts{};
  std::array<mmsghdr, messages_at_once> messages{};
  for (int i = 0; i < messages_at_once; ++i) {
    parts[i] = {buffers[i].data(), message_bytes};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  int count = messages_at_once;
  while (count == messages_at_once) {
    count = recvmmsg(mnl_socket_get_fd(port.socket), messages.data(), messages_at_once, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) {
      const auto* message = reinterpret_cast<const nlmsghdr*>(buffers[i].data());
      if (mnl_nlmsg_ok(message, static_cast<int>(messages[i].msg_len))) take(port, message);
    }
  }
}

void Network::release(Port& port, std::int64_t now) {
  if (port.held.empty() || port.held.front().due_ns > now) return;
  std::uint32_t last = 0;
  while (!port.held.empty() && port.held.front().due_ns <= now) {
    last = port.held.front().id;
    port.held.pop_front();
  }
  verdict(port, NFQNL_MSG_VERDICT_BATCH, last, NF_ACCEPT);  // this one and all before it
}

// Until a packet comes or one is due. Sleeps a little less than that, as much as sleeps usually end late, and
// turns the rest of it.
void Network::wait() {
  std::int64_t due_ns = INT64_MAX;
  for (const Port& port : ports_)
    if (!port.held.empty()) due_ns = std::min(due_ns, port.held.front().due_ns);
  const bool endless = due_ns == INT64_MAX;
  const std::int64_t begin_ns = endless ? 0 : now_ns();
  const std::int64_t sleep_ns = endless ? 0 : std::max<std::int64_t>(0, due_ns - lateness_.ns() - begin_ns);
  const timespec sleep = {sleep_ns / second_ns, sleep_ns % second_ns};
  const int ready = ppoll(sockets_.data(), sockets_.size(), endless ? nullptr : &sleep, nullptr);
  if (ready < 0 && errno != EINTR) fail("poll");
  if (ready > 0) {
    for (std::size_t i = 0; i < ports_.size(); ++i)
      if (sockets_[i].revents != 0) receive(ports_[i]);
  } else if (ready == 0) {
    if (sleep_ns > 0) lateness_.add(now_ns() - begin_ns - sleep_ns);
    while (now_ns() < due_ns) {
    }
  }
}

void Network::run() {
  while (ended == 0) {
    wait();
    const std::int64_t now = now_ns();
    for (Port& port : ports_) release(port, now);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: delay_line DELAY_NS RATE_BITS_PER_SECOND BUFFER_BYTES PID...\n");
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = [](int) { ended = 1; };
  sigaction(SIGTERM, &action, nullptr);
  Network network(std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]));
  for (int i = 4; i < argc; ++i) network.add(argv[i]);
  note_arrivals();
  sched_param priority{};
  priority.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0 && setpriority(PRIO_PROCESS, 0, -20) != 0)
    std::fprintf(stderr, "delay_line: no higher priority here, delays vary when all cores are busy\n");
  prctl(PR_SET_TIMERSLACK, 1);
  mlockall(MCL_CURRENT | MCL_FUTURE);
  std::puts("ready");
  std::fflush(stdout);
  network.run();
  if (network.dropped() > 0)
    std::fprintf(stderr, "box: %lld packets dropped where a link's buffer was full\n",
                 static_cast<long long>(network.dropped()));
}
