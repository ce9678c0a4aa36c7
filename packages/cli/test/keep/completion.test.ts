// The candidates that the shell scripts request; the shells themselves are in completion.slow.ts.
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { completionsAt } from '../../src/completion/completions.ts'
import { buildProgram } from '../../src/program.ts'
import { Captured, laterUndo, type TestDaemon, testDaemon } from '../support.ts'

const undo = laterUndo()
let daemon: TestDaemon

beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0', q4_0: 'Q4_0' } })
  expect((await daemon.svc('import', 'local', 'Tiny', '--as', 'acme/tiny')).code).toBe(0)
}, 60_000)
afterAll(undo.all)

async function completed(...words: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await daemon.svc('__complete', '--', ...words)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t')[0]!)
}

describe('the candidates', () => {
  it('completes commands, options and choices', async () => {
    expect(await completed('ver')).toEqual(['verify-signature', 'verify'])
    for (const command of ['why', 'backup', 'restore']) expect(await completed(command)).toEqual([command])
    expect(await completed('import', 'local', '--rep')).toEqual(['--replace'])
    expect(await completed('import', '')).toEqual(['local', 'hf', 'bt', 'catalog', 'oci', 'ollama'])
    expect(await completed('help', 'import', 'h')).toEqual(['hf'])
    expect(await completed('service', 'in')).toEqual(['install'])
    expect(await completed('completion', '')).toEqual(['bash', 'zsh', 'fish'])
    expect(await completed('path', '--a')).toEqual(['--all'])
    expect(await completed('service', 'install', '--manager=l')).toEqual(['--manager=launchd'])
    expect(await completed('service', 'install', '--manager', 'l')).toEqual(['launchd'])
    expect(await completed('nonsense', '')).toEqual([])
    expect(await completed('')).not.toContain('__complete')
  })

  it('completes references and quants of the store, ignoring case, also canonical ones', async () => {
    const all = ['acme/tiny:bf16', 'acme/tiny:q4_0', 'acme/tiny:q8_0']
    expect(await completed('path', '')).toEqual(all)
    expect(await completed('path', 'ACME/tiny:Q8')).toEqual(['acme/tiny:q8_0'])
    expect(await completed('cat', '--range', '0-3', 'svc:///acme/tiny:b')).toEqual(['svc:///acme/tiny:bf16'])
    expect(await completed('show', '--', 'acme/tiny:q4')).toEqual(['acme/tiny:q4_0'])
    expect(await completed('path', 'other/')).toEqual([])
    expect(await completed('path', 'acme/tiny:q8_0', '')).toEqual([])
  })

  it('completes names, jobs and files where they apply', async () => {
    expect(await completed('import', 'local', 'x', '--as=ac')).toEqual(['--as=acme/tiny'])
    expect(await completed('ls', 'a')).toEqual(['acme/tiny'])
    expect(await completed('jobs', '')).toEqual([expect.stringMatching(/^[0-9a-f]+$/)])
    expect(await completed('import', 'local', 'a', '')).toEqual([':files'])
    expect(await completed('--socket', '')).toEqual([':files'])
    expect(await completed('backup', '')).toEqual([':files'])
  })

  it('offers nothing, without an error, if no daemon answers', async () => {
    const { code, stdout, stderr } = await daemon.svc('__complete', '--', '--socket', '/nowhere.sock', 'path', '')
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  it('completes every argument that the store or the file system knows', () => {
    const out = new Captured('utf8')
    const terminal = { stdout: out.output, stderr: out.output, cwd: '/', env: {} }
    const program = buildProgram('0.0.0', terminal, new AbortController().signal, false)
    const open: string[] = []
    const walk = (command: typeof program, words: string[]): void => {
      for (const inner of command.commands) walk(inner, [...words, inner.name()])
      const [first] = command.registeredArguments
      if (command.commands.length > 0 || first === undefined || words[0] === '__complete') return
      const { candidates, sources } = completionsAt(program, [...words, ''])
      if (candidates.length + sources.length === 0) open.push(`${words.join(' ')} <${first.name()}>`)
    }
    walk(program, [])
    // names elsewhere, which svc does not know
    for (const each of open) expect(each).toMatch(/^(import (hf|bt|catalog|ollama)|(catalog )?search) </)
  })
})
