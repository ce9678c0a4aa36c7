import { defineConfig } from 'vitest/config'
import { shared as base } from './vitest.config.ts'

// The longer tier, `pnpm test:faults`: crashes, full disks, soaks. Its files are `*.faults.ts` beside the tests; what needs
// root or a foreign program says so and is skipped where that is absent. Spread, not merged: merging joins lists, and the
// files of the first tier would run here as well, one after the other.
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: [
      'packages/*/test/**/*.faults.ts',
      'test/**/*.faults.ts',
      'packages/*/test/**/*.slow.ts',
      'packages/internal/*/test/**/*.slow.ts',
      'test/**/*.slow.ts',
      'packages/*/test/**/fuzz.test.ts',
      'packages/internal/*/test/**/fuzz.test.ts',
      'packages/*/test/**/room.model.test.ts'
    ],
    env: {
      SVC_FUZZ_CASES: process.env.SVC_FUZZ_CASES ?? '1000000',
      SVC_MODEL_RUNS: process.env.SVC_MODEL_RUNS ?? '200',
      SVC_ROOM_RUNS: process.env.SVC_ROOM_RUNS ?? '50',
      SVC_MUTATED_MESSAGES: process.env.SVC_MUTATED_MESSAGES ?? '10000'
    },
    fileParallelism: false,
    testTimeout: 30 * 60_000,
    hookTimeout: 60_000
  }
})
