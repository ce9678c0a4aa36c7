/** Product sources that use the system's clock themselves, each with its reason. All others are given a `Clock`. */
export const SYSTEM_CLOCK: Readonly<Record<string, string>> = {
  'packages/internal/bridge/src/live-feed.ts': 'limits how long another process may say nothing',
  'packages/internal/server/src/blob-pump.ts': 'times a socket out, by a timer that each written chunk begins again',
  'packages/internal/metrics/src/event-loop.ts': 'measures the event loop of this process',
  'packages/internal/clock/src/clock.ts': 'is the clock',
  'packages/internal/concurrency/src/loop-budget.ts': 'measures the CPU time of a turn of the event loop',
  'packages/internal/files/src/quick-reads.ts': 'measures how long a disk takes',
  'packages/internal/net/src/download-limit.ts': 'has one time for all threads of a process',
  'packages/ui/src/clock.ts': 'is the clock of the page, which a browser runs',
  'packages/internal/workers/src/pulse.ts': 'shows that the event loop of a thread turns'
}

/**
 * Slow tests whose outcome depends on a clock, each with its reason. They run one at a time, when nothing else of the tier runs
 * (`vitest.slow.config.ts`), together with those in {@link ALONE}. The first tier has none.
 */
export const WALL_TIME: Readonly<Record<string, string>> = {
  'packages/cas/test/file-pass.slow.ts': 'holds up its thread, which is to hear of nothing meanwhile',
  'packages/daemon/test/app/download-limit.slow.ts': 'measures how fast bytes come over sockets',
  'packages/daemon/test/app/process.slow.ts': 'kills processes at moments that nothing announces',
  'packages/daemon/test/swarm/mutated-messages.slow.ts': 'paces datagrams, which a full buffer drops without a word',
  'packages/hub/test/direct.slow.ts': 'threads that must not write tell nobody that they did not',
  'packages/hub/test/download.slow.ts': 'a sink that takes no more is left alone for longer than a stalled socket',
  'packages/hub/test/throttled.slow.ts': 'compares how long downloads take from sources with a fixed rate',
  'packages/internal/clock/test/clock.slow.ts': "is the test of the system's clock",
  'packages/publish/test/hostile-s3.slow.ts': 'the S3 client waits by a clock of its own',
  'packages/swarm-v1/test/swarm.slow.ts': 'the rate limit is that of a library in another thread'
}

/** Tests of foreign programs, which have their own idea of how long something may take. */
export const ALONE: readonly string[] = [
  'packages/*/test/interop/**/*.slow.ts',
  'packages/daemon/test/swarm/libtorrent.slow.ts'
]
