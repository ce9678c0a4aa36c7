// `pnpm test` builds first: there the threads that tests start run what was built, one file each, instead of loading and compiling
// dozens of source files every time. Thousands of threads start; this takes a third of the CPU of a start away.
import { existsSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { fileURLToPath } from 'node:url'
import threads, { type WorkerOptions } from 'node:worker_threads'

const patched = Symbol.for('svc.test.builtThreads')
const own = threads as typeof threads & { [patched]?: true }

/** `packages/NAME/src/…/x-worker.ts` is built as `packages/NAME/dist/x-worker.js`. */
function builtOf(file: string | URL): string | undefined {
  const path = file instanceof URL ? fileURLToPath(file) : file
  const [, folder, name] = /^(.*\/packages\/(?:internal\/)?[^/]+)\/src\/(?:.*\/)?([^/]+)\.ts$/.exec(path) ?? []
  const built = `${folder}/dist/${name}.js`
  return folder !== undefined && existsSync(built) ? built : undefined
}

/** What a built file imports is built, too. */
const withoutSources = (words: readonly string[]): string[] =>
  words.filter((word, i) => !word.endsWith('svc-source') && words[i + 1] !== 'svc-source')

if (process.env.SVC_TEST_BUILT === '1' && own[patched] === undefined) {
  const { Worker } = threads
  threads.Worker = class extends Worker {
    constructor(file: string | URL, options: WorkerOptions = {}) {
      const built = builtOf(file)
      if (built === undefined) super(file, options)
      else super(built, { ...options, execArgv: withoutSources(options.execArgv ?? process.execArgv) })
    }
  }
  own[patched] = true
  syncBuiltinESMExports()
}
