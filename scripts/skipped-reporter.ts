import { relative } from 'node:path'
import type { Reporter, TestModule } from 'vitest/node'

/** Names what was not tested: the tests that skip where python3-libtorrent, nginx, strace or the like are not installed. */
export default class SkippedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules.flatMap((module) => {
      // in a file that failed, a hook may have kept tests from running: those did not skip.
      const tests = [...module.children.allTests('skipped')].filter(
        (test) => module.ok() || test.options.mode === 'skip'
      )
      const path = relative(process.cwd(), module.moduleId)
      return tests.length === 0 ? [] : [`  ${path}: ${tests.length}`, ...tests.map((test) => `    - ${test.fullName}`)]
    })
    if (lines.length === 0) return
    console.log(`\nSKIPPED tests:\n${lines.join('\n')}`)
    if (process.env.SVC_REQUIRE_INTEROP !== '1') {
      console.log(
        'Interop tests need foreign programs; on Debian: apt-get install python3-libtorrent python3-swift nginx strace.\n' +
          'With SVC_REQUIRE_INTEROP=1 they fail instead of being skipped.'
      )
    }
  }
}
