import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { expect, it } from 'vitest'
import { EXIT_HELP } from '../src/exit-codes.ts'
import { canonicalRef, importName } from '../src/models/reference.ts'
import { buildProgram } from '../src/program.ts'
import { openSession } from '../src/session.ts'
import { Captured, testDaemon } from './support.ts'

const terminal = { stdout: new Captured('latin1').output, stderr: new Captured('utf8').output, cwd: '/', env: {} }
const unused = new AbortController().signal
const root = resolve(import.meta.dirname, '../../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

it('docs/cli.md has the exit codes and names every command', () => {
  const page = read('docs/cli.md')
  const rows = [...page.matchAll(/^\| (\d+) +\| (.*?) +\|$/gm)].map(([, code, text]) => [Number(code), text])
  expect(rows).toEqual(EXIT_HELP.map((row) => [...row]))
  const names = (command: ReturnType<typeof buildProgram>, prefix: string): string[] =>
    command.commands.flatMap((inner) =>
      inner.commands.length > 0 ? names(inner, `${prefix} ${inner.name()}`) : [`${prefix} ${inner.name()}`]
    )
  const all = names(buildProgram('0.0.0', terminal, unused, false), 'svc')
  expect(all.length).toBeGreaterThan(12)
  for (const name of all) expect(page).toContain(`\`${name}`)
})

it('the first help page has a group for every command', () => {
  expect(buildProgram('0.0.0', terminal, unused, false).helpInformation()).not.toMatch(/^Commands:/m)
})

it('the README example runs', { timeout: 60_000 }, async () => {
  const daemon = await testDaemon()
  makeModelFolder(join(daemon.folder, 'tiny'))
  const example = /```sh\n([\s\S]*?)```/.exec(read('packages/cli/README.md'))![1]!
  const lines = example.trim().split('\n')
  expect(lines.length).toBeGreaterThan(4)
  for (const line of lines) {
    const words = line.replace(/#.*$/, '').trim().split(/\s+/)
    expect(words.shift()).toBe('svc')
    const ran = await daemon.svc(...words)
    expect([line, ran.code]).toEqual([line, 0])
  }
})

interface RefVector {
  readonly input: string
  readonly canonical?: string
  readonly short?: string
  readonly error?: { readonly code: string; readonly reason: string }
  readonly suggestion?: string
}
const vectors = (JSON.parse(read('vectors/ref.json')) as { parse: RefVector[] }).parse
// There is no daemon: parsing the short form needs none.
const session = openSession({ socket: '/nonexistent/svc.sock' }, '0.0.0', terminal, unused)

it.each(vectors.filter(({ canonical }) => canonical !== undefined))('$input is taken, short too', async (row) => {
  expect(await canonicalRef(session, row.input)).toBe(row.canonical)
  expect(await canonicalRef(session, row.short!)).toBe(row.canonical)
})

// The daemon accepts only canonical references; svc also accepts complete short forms.
const complete = (row: RefVector): boolean =>
  row.error?.reason === 'short-form' && row.suggestion?.includes('<') === false
// svc accepts quants in any case, and asks the daemon if a quant or namespace is missing.
const lenient = ({ input, error }: RefVector): boolean =>
  error?.code === 'E_PARSE' && /^(?:svc:\/\/\/)?[^:@]+:(?:[^@+]*\+)?(?=[A-Z_0-9]*[A-Z])[A-Z0-9_]+$/.test(input)
const lacking = ({ input }: RefVector): boolean => /^(?:(?:svc:\/\/\/)?[a-z0-9._-]+\/)?[a-z0-9._-]+$/i.test(input)
const rejected = vectors.filter((row) => row.error !== undefined && !complete(row) && !lenient(row) && !lacking(row))
it.each(rejected)('$input is refused', async (row) => {
  await expect(canonicalRef(session, row.input)).rejects.toMatchObject({ code: row.error!.code })
})
it.each(vectors.filter(complete))('$input, which the daemon refuses, is taken', async (row) => {
  expect(await canonicalRef(session, row.input)).toBe(row.suggestion)
})

it('an import needs a name, and suggests one', () => {
  expect(importName('acme/tiny', '/x')).toBe('acme/tiny')
  expect(() => importName(undefined, '/data/My Model.gguf')).toThrow(
    expect.objectContaining({ exit: 'usage', hint: 'add --as my/my-model' })
  )
})
