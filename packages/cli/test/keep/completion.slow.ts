// Completion on real command lines of real shells.
import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeModelFolder } from '@svc/testkit/models'
import { SVC } from '@svc/testkit/programs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from '../support.ts'

const run = promisify(execFile)
const undo = laterUndo()
let daemon: TestDaemon
let bin: string

beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0', q4_0: 'Q4_0' } })
  expect((await daemon.svc('import', 'local', 'Tiny', '--as', 'acme/tiny')).code).toBe(0)
  bin = join(daemon.folder, 'bin')
  mkdirSync(bin)
  const words = `'${[process.execPath, ...SVC].join("' '")}'`
  writeFileSync(join(bin, 'svc'), `#!/bin/sh\nexec ${words} "$@"\n`)
  chmodSync(join(bin, 'svc'), 0o755)
}, 60_000)
afterAll(undo.all)

const env = (): NodeJS.ProcessEnv => ({
  PATH: `${bin}:${process.env.PATH}`,
  HOME: daemon.folder,
  TERM: 'xterm',
  SVC_SOCKET: daemon.socketPath,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE
})

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0

describe('in the shells', () => {
  it.skipIf(!has('bash') || !has('script'))(
    'bash completes a reference behind its colon',
    async () => {
      const shown = await type('bash --norc --noprofile -i', [
        "PS1='ready> '; source <(svc completion bash)",
        // completes a command, then a reference, and runs the line
        'svc reso\tacme/tiny:q8\t--json'
      ])
      expect(shown).toContain('"ref":"svc:///acme/tiny:q8_0"')
    },
    120_000
  )

  it.skipIf(!has('zsh') || !has('script'))(
    'zsh completes a reference behind its colon',
    async () => {
      const shown = await type('zsh -f -i', [
        "PS1='ready> '; autoload -Uz compinit; compinit -u -D; source <(svc completion zsh)",
        'svc reso\tacme/tiny:q8\t--json'
      ])
      expect(shown).toContain('"ref":"svc:///acme/tiny:q8_0"')
    },
    120_000
  )

  it.skipIf(!has('fish'))('fish lists commands, references and files', async () => {
    writeFileSync(join(daemon.folder, 'one.gguf'), '')
    const complete = async (line: string): Promise<string[]> => {
      const script = `svc completion fish | source; complete -C '${line}'`
      // asynchronous, since the daemon runs in this process
      const { stdout, stderr } = await run('fish', ['--no-config', '-c', script], { env: env(), cwd: daemon.folder })
      expect(stderr).toBe('')
      return stdout.trimEnd().split('\n')
    }
    expect((await complete('svc ver'))[0]).toEqual('verify\tverify every byte of a model or of the whole store')
    expect(await complete('svc path acme/tiny:q')).toEqual(['acme/tiny:q4_0', 'acme/tiny:q8_0'])
    expect((await complete('svc path ')).length).toBe(3)
    expect(await complete('svc import local one')).toEqual(['one.gguf'])
  })

  it.each(['bash', 'zsh', 'fish'] as const)('%s finds no fault in its script', async (shell) => {
    const { stdout, code } = await daemon.svc('completion', shell)
    expect(code).toBe(0)
    if (!has(shell)) return expect(stdout).toContain('__complete')
    const file = join(daemon.folder, `script.${shell}`)
    writeFileSync(file, stdout)
    expect((await run(shell, ['-n', file])).stderr).toBe('')
  })
})

/** Types lines at a terminal, each after the prompt; waits for the completion after a tab. @returns what the terminal showed */
async function type(shell: string, lines: readonly string[]): Promise<string> {
  const child = spawn('script', ['-qec', shell, '/dev/null'], {
    cwd: daemon.folder,
    env: { ...env(), INPUTRC: '/dev/null' },
    stdio: ['pipe', 'pipe', 'inherit']
  })
  let shown = ''
  let grown: (() => void) | undefined
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    shown += part
    grown?.()
  })
  /** Waits until the text behind `from` fits. */
  const until = async (from: number, fits: (text: string) => boolean): Promise<void> => {
    while (!fits(shown.slice(from))) await new Promise<void>((done) => (grown = done))
  }
  const ended = once(child, 'close')
  let from = 0
  for (const line of lines) {
    const parts = line.split(/(?<=\t)/)
    for (const part of parts) {
      from = shown.length
      child.stdin.write(part)
      // both shells add a blank to a unique completion
      if (part.endsWith('\t')) {
        const begun = part.trim().split(/[\s:]/).at(-1)!
        await until(from, (text) => new RegExp(`${begun}\\S+ `).test(plain(text)))
      }
    }
    from = shown.length
    child.stdin.write('\n')
    await until(from, (text) => /ready> |"ref"/.test(plain(text).replace(/PS1='ready> '/, '')))
  }
  child.stdin.end('exit\n')
  await ended
  return shown
}

/** Without escape sequences. */
const plain = (text: string): string => text.replace(/\u001b(?:\[[0-9;?]*[a-zA-Z]|[=>]|\][^\u0007]*\u0007)/g, '')
