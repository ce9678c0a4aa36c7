import { defineConfig } from 'vitest/config'
import { shared as base } from './vitest.config.ts'

// The part of the longer tier that continuous integration runs for every change, `pnpm test:slow`: processes that are killed and
// restarted, installations, and programs of others that take seconds to start. Its files are `*.slow.ts` beside the tests.
export default defineConfig({
  ...base,
  test: {
    ...base.test,
    include: ['packages/*/test/**/*.slow.ts', 'test/**/*.slow.ts'],
    exclude: ['**/node_modules/**']
  }
})
