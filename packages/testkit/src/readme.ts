import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'

/** The first example in a package's README.md. */
export interface ReadmeExample {
  readonly code: string
  /** What its comments say that it prints, line by line. */
  readonly promised: readonly (string | undefined)[]
  /** Runs it as a program of its own, from the sources. @returns what it printed. @throws if it fails, or does not end */
  run(env?: Readonly<Record<string, string>>): Promise<string>
  /** Runs it in this process. @param given its names: `api` is the package. @returns the arguments of each `console.log` */
  runWith(given: Readonly<Record<string, unknown>>): Promise<readonly (readonly unknown[])[]>
}

/** @param test the URL of a test in the folder `test` of the package, or in one below */
export function readmeExample(test: string): ReadmeExample {
  const folder = new URL(test.replace(/\/test\/.*$/, '/'))
  const readme = readFileSync(new URL('README.md', folder), 'utf8')
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1]
  if (code === undefined) throw new Error(`there is no example in ${folder.pathname}README.md`)
  return {
    code,
    promised: [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, line]) => line),
    async run(env = {}) {
      const args = ['--conditions=svc-source', '--input-type=module-typescript', '-e', code]
      const options = { cwd: folder, env: { ...process.env, ...env }, timeout: 100_000 }
      return (await promisify(execFile)(process.execPath, args, options)).stdout
    },
    async runWith(given) {
      const body = code.replace(/^import \{(.*)\} from '@svc\/[\w-]+'$/m, 'const {$1} = api')
      const printed: unknown[][] = []
      const names = { ...given, console: { log: (...line: unknown[]) => void printed.push(line) } }
      const run = new Function(...Object.keys(names), `return (async () => {${body}})()`)
      await run(...Object.values(names))
      return printed
    }
  }
}
