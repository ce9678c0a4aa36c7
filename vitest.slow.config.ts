import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { ALONE, WALL_TIME } from './scripts/structure/wall-time.ts'
import { shared as base } from './vitest.config.ts'

// The part of the longer tier that continuous integration runs for every change, `pnpm test:slow`: whole daemons against each other
// and against liars, processes that are killed and restarted, programs of others, random runs, and checks of the checks. Its files
// are `*.slow.ts` beside the tests.
const include = ['packages/*/test/**/*.slow.ts', 'packages/internal/*/test/**/*.slow.ts', 'test/**/*.slow.ts']
const alone = [...Object.keys(WALL_TIME), ...ALONE]

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: [
      // they wait even more than those of the first tier.
      {
        extends: true,
        test: {
          name: 'many',
          include,
          exclude: ['**/node_modules/**', ...alone],
          maxWorkers: 3 * Math.max(2, availableParallelism())
        }
      },
      // one after the other, when nothing else runs.
      { extends: true, test: { name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } } }
    ]
  }
})
