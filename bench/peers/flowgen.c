/* flowgen: makes a DPDK net_null device receive the flows of weir's null port.
 *
 *   cc -O3 -march=native -shared -fPIC -o flowgen.so flowgen.c $(pkg-config --cflags libdpdk)
 *   LD_PRELOAD=flowgen.so FLOWGEN_HEADERS=udp FLOWGEN_FLOWS=1000 ovs-vswitchd ...
 *
 * Loaded before libdpdk, it sees devices being started. From then on the device called FLOWGEN_DEVICE (net_null0) receives what its
 * driver allocates with the headers of the next flows written into it; other net_null devices receive nothing. Frames are those of
 * crates/port/src/null, byte by byte:
 *   FLOWGEN_HEADERS udp mac mpls masks destinations listed   FLOWGEN_FLOWS, FLOWGEN_SPREAD, FLOWGEN_SIZE  numbers
 *   FLOWGEN_ORDER cycle random   FLOWGEN_SEED  a number   FLOWGEN_LIST  file: 4 bytes for each destination, 64 for each header
 *
 *   cc -DFLOWGEN_SHOW -o flowgen flowgen.c && FLOWGEN_HEADERS=udp ./flowgen 256
 * writes the first 256 headers to standard output instead, to be compared. */
#define _GNU_SOURCE
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 64, HEADER = 64, SOURCE = 26, DESTINATION = 30, SOURCE_PORT = 34, DESTINATION_PORT = 36 };
typedef struct { uint8_t byte[HEADER]; } header;
typedef enum { UDP, MAC, MPLS, MASKS, DESTINATIONS, LISTED, KINDS } kind;
static const char *const KIND_NAMES[KINDS] = { "udp", "mac", "mpls", "masks", "destinations", "listed" };

static struct {
    kind kind;
    uint32_t flows, spread, size;
    uint32_t step, next;             /* a cycle */
    uint64_t cycled, draw;           /* how many flows are still to come in cycles; then they are drawn */
    int is_random;
    const header *headers;
    const uint32_t *destinations;    /* as they go into headers */
    header template;
} gen __attribute__((aligned(64)));

static void fail(const char *what)
{
    fprintf(stderr, "flowgen: %s\n", what);
    exit(2);
}

static inline void put16(header *h, int at, uint32_t value) { uint16_t v = htobe16((uint16_t)value); memcpy(h->byte + at, &v, 2); }
static inline void put32(header *h, int at, uint32_t value) { uint32_t v = htobe32(value); memcpy(h->byte + at, &v, 4); }

/* ---- which flow comes next */

static void next_flows(uint32_t *flow, unsigned count)
{
    if (gen.is_random && gen.cycled == 0) {
        uint64_t x = gen.draw;
        for (unsigned i = 0; i < count; i++) {
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            flow[i] = (uint32_t)(((x >> 32) * gen.flows) >> 32);
        }
        gen.draw = x;
        return;
    }
    gen.cycled -= gen.cycled < count ? gen.cycled : count;
    uint32_t next = gen.next;
    for (unsigned i = 0; i < count; i++) {
        flow[i] = next;
        next += gen.step;
        if (next >= gen.flows) next -= gen.flows;
    }
    gen.next = next;
}

/* ---- what its headers are */

static inline uint32_t value_of(uint32_t flow) { return gen.spread == gen.flows ? flow : flow % gen.spread; }

static inline void udp(header *h, uint32_t value, uint32_t port)
{
    *h = gen.template;
    put32(h, SOURCE, 0x0a000000 + value);
    put32(h, DESTINATION, 0xc0a80000 + (value & 0xffff));
    put16(h, SOURCE_PORT, 1024 + (port & 0x7fff));
}

static inline void mac(header *h, uint32_t flow)
{
    *h = gen.template;
    put32(h, 2, value_of(flow));
    put32(h, SOURCE, 0x0a000000 + flow);
}

static inline void mpls(header *h, uint32_t flow)
{
    *h = gen.template;
    put32(h, 14, (value_of(flow) & 0xfffff) << 12 | 0x140);
    put32(h, SOURCE + 4, 0x0a000000 + flow);
}

static inline void masks(header *h, uint32_t flow)
{
    uint32_t class = flow & 31, all = class * 0x01010101u;
    *h = gen.template;
    put32(h, SOURCE, all + (10u << 24));
    put32(h, DESTINATION, all + (100u << 24));
    put16(h, SOURCE_PORT, flow >> 5);
    put16(h, DESTINATION_PORT, 1000 + class);
}

static inline void to(header *h, uint32_t flow)
{
    *h = gen.template;
    memcpy(h->byte + DESTINATION, &gen.destinations[flow], 4);
}

/* Headers for a burst of flows; at(i) is where the i-th are to be. */
#define WRITE(count, flow, at) do {                                                                                          \
    switch (gen.kind) {                                                                                                      \
    case UDP:                                                                                                                \
        if (gen.spread == gen.flows) for (unsigned i = 0; i < (count); i++) udp(at(i), (flow)[i], (flow)[i]);                \
        else for (unsigned i = 0; i < (count); i++) udp(at(i), (flow)[i] % gen.spread, (flow)[i] / gen.spread);              \
        break;                                                                                                               \
    case MAC: for (unsigned i = 0; i < (count); i++) mac(at(i), (flow)[i]); break;                                           \
    case MPLS: for (unsigned i = 0; i < (count); i++) mpls(at(i), (flow)[i]); break;                                         \
    case MASKS: for (unsigned i = 0; i < (count); i++) masks(at(i), (flow)[i]); break;                                       \
    case DESTINATIONS:                                                                                                       \
        for (unsigned i = 0; i < (count); i++) __builtin_prefetch(&gen.destinations[(flow)[i]]);                             \
        for (unsigned i = 0; i < (count); i++) to(at(i), (flow)[i]);                                                         \
        break;                                                                                                               \
    default:                                                                                                                 \
        for (unsigned i = 0; i < (count); i++) __builtin_prefetch(&gen.headers[(flow)[i]]);                                  \
        for (unsigned i = 0; i < (count); i++) *at(i) = gen.headers[(flow)[i]];                                              \
    } } while (0)

/* ---- settings */

static uint32_t number(const char *name, uint32_t otherwise)
{
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static uint32_t divisor(uint32_t a, uint32_t b) { return b ? divisor(b, a % b) : a; }

static void *read_list(size_t bytes)
{
    const char *name = getenv("FLOWGEN_LIST");
    FILE *file = name ? fopen(name, "rb") : NULL;
    void *list = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (!file || !list || fread(list, 1, bytes, file) != bytes) fail("FLOWGEN_LIST is missing or too short");
    fclose(file);
    return list;
}

static void make_template(void)
{
    header *h = &gen.template;
    int ip = gen.kind == MPLS ? 18 : 14;
    uint32_t length = gen.size - ip;
    memcpy(h->byte, "\x02\0\0\0\0\1\x06\0\0\0\0\2", 12);
    put16(h, 12, gen.kind == MPLS ? 0x8847 : 0x0800);
    if (gen.kind == MPLS) put32(h, 14, 0x140);
    put32(h, ip, 0x45000000 | length);
    put32(h, ip + 8, 64 << 24 | 17 << 16);
    put32(h, ip + 12, 0x0a000001);
    put32(h, ip + 16, 0xc0a80001);
    put16(h, ip + 20, 1024);
    put16(h, ip + 22, 2048);
    put16(h, ip + 24, length - 20);
}

static void set_up(void)
{
    const char *kind = getenv("FLOWGEN_HEADERS"), *order = getenv("FLOWGEN_ORDER");
    for (gen.kind = UDP; gen.kind < KINDS && strcmp(KIND_NAMES[gen.kind], kind ? kind : "udp"); gen.kind++) ;
    if (gen.kind == KINDS) fail("FLOWGEN_HEADERS: expected udp, mac, mpls, masks, destinations or listed");
    gen.flows = number("FLOWGEN_FLOWS", 1);
    gen.spread = number("FLOWGEN_SPREAD", gen.flows);
    gen.size = number("FLOWGEN_SIZE", 60);
    if (!gen.flows || !gen.spread || gen.size < 60 || gen.size > 1514) fail("a number is out of range");
    uint32_t step = (uint32_t)(((uint64_t)gen.flows * 0x9e3779b9u) >> 32);
    for (step = step ? step : 1; step < gen.flows && divisor(step, gen.flows) != 1; step++) ;
    gen.step = step < gen.flows ? step : 0;
    if (order && !strcmp(order, "random")) {
        gen.is_random = 1;
        gen.cycled = 2 * (uint64_t)gen.flows;
        gen.draw = number("FLOWGEN_SEED", 1);
        if (!gen.draw) gen.draw = 1;
    }
    if (gen.kind == DESTINATIONS) gen.destinations = read_list((size_t)gen.flows * 4);
    if (gen.kind == LISTED) gen.headers = read_list((size_t)gen.flows * HEADER);
    make_template();
}

#ifdef FLOWGEN_SHOW

int main(int argc, char **argv)
{
    unsigned left = argc > 1 ? (unsigned)atoi(argv[1]) : BURST;
    set_up();
    while (left > 0) {
        static header frame[BURST];
        uint32_t flow[BURST];
        unsigned count = left < BURST ? left : BURST;
        next_flows(flow, count);
#define AT(i) (&frame[i])
        WRITE(count, flow, AT);
        fwrite(frame, sizeof *frame, count, stdout);
        left -= count;
    }
    return 0;
}

#else

#include <dlfcn.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

static eth_rx_burst_t driver_receive;

static uint16_t receive(void *queue, struct rte_mbuf **frames, uint16_t most)
{
    uint16_t count = driver_receive(queue, frames, most < BURST ? most : BURST);
    uint32_t flow[BURST];
    next_flows(flow, count);
#define AT(i) rte_pktmbuf_mtod(frames[i], header *)
    WRITE(count, flow, AT);
    for (unsigned i = 0; i < count; i++) frames[i]->data_len = frames[i]->pkt_len = gen.size;
    return count;
}

static uint16_t receive_nothing(void *queue, struct rte_mbuf **frames, uint16_t most)
{
    (void)queue; (void)frames; (void)most;
    return 0;
}

/* Called by OVS instead of DPDK's own, which sets the receive function anew each time. */
int rte_eth_dev_start(uint16_t port)
{
    int (*start)(uint16_t) = (int (*)(uint16_t))dlsym(RTLD_NEXT, "rte_eth_dev_start");
    struct rte_eth_fp_ops *operations = dlsym(RTLD_DEFAULT, "rte_eth_fp_ops");
    char name[RTE_ETH_NAME_MAX_LEN];
    const char *wanted = getenv("FLOWGEN_DEVICE");
    if (!start || !operations) fail("this program has no DPDK in shared libraries");
    int result = start(port);
    if (result || rte_eth_dev_get_name_by_port(port, name) || strncmp(name, "net_null", 8)) return result;
    if (strcmp(name, wanted ? wanted : "net_null0")) {
        operations[port].rx_pkt_burst = receive_nothing;
        return result;
    }
    if (!gen.flows) set_up();
    if (operations[port].rx_pkt_burst != receive) driver_receive = operations[port].rx_pkt_burst;
    operations[port].rx_pkt_burst = receive;
    fprintf(stderr, "flowgen: %s receives %u flows of kind %s\n", name, gen.flows, KIND_NAMES[gen.kind]);
    return result;
}

#endif
