import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Sources are tested, not dist: workspace packages resolve through the `svc-source` export condition,
// in vite, in the forked test processes and in the worker threads that these start (but see test/built-threads.ts).
const conditions = ['svc-source']
const report = process.env.SVC_TEST_REPORT

// Threads and processes that tests start strip and compile the same sources each time otherwise: five times the CPU.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/svc-compile', import.meta.url))

/** They take longest, most of it waiting: begun last, they would be waited for while the cores idle. */
const LONGEST = [
  'swarm/seeding.test',
  'swarm/places.test',
  'swarm/private.test',
  'library/views.test',
  'test/commands.slow',
  'test/known-layouts.slow',
  'ui/truth.slow',
  'ui/page.slow',
  'swarm/seeding.slow',
  'swarm/from-peers-sources.slow',
  'sources/changed-source.slow',
  'swarm/restart.slow',
  'provenance/random-histories.slow'
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`${name}.ts`))
      return at === -1 ? LONGEST.length : at
    }
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}

const include = [
  'packages/*/test/**/*.test.ts',
  'packages/internal/*/test/**/*.test.ts',
  'vectors/**/*.test.ts',
  'test/**/*.test.ts'
]

/** What the tiers share. */
export const shared = defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    // files share processes: to start one and load the modules for each takes a fifth of the CPU. What a test changes in its
    // process it puts back; for these vitest does it, and of the clock test/put-back.ts makes sure.
    isolate: false,
    globalSetup: ['test/built-page.ts'],
    setupFiles: ['test/built-threads.ts', 'test/put-back.ts'],
    unstubEnvs: true,
    unstubGlobals: true,
    // a test that needs a second try is a defect of its own, in CI too.
    retry: 0,
    sequence: { sequencer: LongestFirst },
    pool: 'forks',
    execArgv: ['--conditions=svc-source'],
    // many tests wait, for a disk, a timer or a program of others: with as many workers as cores, cores would idle.
    maxWorkers: 2 * Math.max(2, availableParallelism()),
    // seconds on a quiet machine. The tests fsync, hash and start programs: a busy one may take many times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // the default of one second is less than what starting a thread may take then.
    expect: { poll: { timeout: 30_000 } },
    reporters: [
      'default',
      './scripts/skipped-reporter.ts',
      ...(report === undefined ? [] : [['json', { outputFile: report }] as ['json', { outputFile: string }]])
    ]
  }
})

export default defineConfig({
  ...shared,
  test: { ...shared.test, include, setupFiles: [...shared.test!.setupFiles!, 'test/kept-threads.ts'] }
})
