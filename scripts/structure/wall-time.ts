/**
 * Tests of the first tier that read a clock or wait for time to pass, each with its reason. They run one at a time, after all others
 * (`vitest.config.ts`), together with those in {@link ALONE}.
 */
export const WALL_TIME: Readonly<Record<string, string>> = {
  'packages/daemon/test/app/process.test.ts': 'kills processes at moments that nothing announces',
  'packages/daemon/test/swarm/mutated-messages.test.ts': 'paces datagrams, which a full buffer drops without a word',
  'packages/hub/test/direct.test.ts': 'threads that must not write tell nobody that they did not',
  'packages/hub/test/download.test.ts': 'a sink that takes no more is left alone for longer than a stalled socket',
  'packages/publish/test/hostile-s3.test.ts': 'the S3 client waits by a clock of its own',
  'packages/swarm-v1/test/swarm.test.ts': 'the rate limit is that of a library in another thread'
}

/** Tests of foreign programs, which have their own idea of how long something may take. */
export const ALONE: readonly string[] = [
  'packages/*/test/interop/**/*.test.ts',
  'packages/daemon/test/swarm/libtorrent.test.ts'
]
