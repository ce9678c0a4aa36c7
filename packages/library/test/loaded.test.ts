// What a program loads that imports local files, without a daemon.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const UNNEEDED =
  'client daemon hub mirror oci pino publish sharing signature sources swarm swarm-v1 typebox undici webtorrent'.split(
    ' '
  )

const HOOK = `
import { registerHooks } from 'node:module'
const loaded = new Set()
registerHooks({ load: (url, context, next) => (loaded.add(url), next(url, context)) })
process.on('exit', () => console.log(JSON.stringify([...loaded])))
`

const ASKING = `
const { createClient, modelsOf } = await import('@svc/client')
const models = modelsOf(createClient({ socketPath: process.argv.at(-1) + '/s.sock' }))
const importing = models.import({ kind: 'hub', repo: 'Org/Model' }, 'org/model')
await importing.then(() => process.exit(1), ({ code }) => process.exit(code === 'E_UNREACHABLE' ? 0 : 1))
`

const PROGRAM = `
const { localFiles, openLibrary, readLibrary } = await import('@svc/library')
const [folder] = process.argv.slice(-1)
const library = await openLibrary({ root: folder + '/store' })
await library.import(localFiles([folder + '/tiny-q8_0.gguf']), 'me/tiny')
await library.ensure('svc:///me/tiny:q8_0')
await library.verify('all')
const reader = await readLibrary({ root: folder + '/store' })
await reader.open('svc:///me/tiny:q8_0')
await reader.close()
await library.close()
`

/** The packages, ours and of others, that a program in a package's folder has loaded. */
function loadedBy(program: string, room: string): Set<string> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-loaded-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'tiny-q8_0.gguf'), 'GGUF, but for its first four bytes')
  const words = ['--conditions=svc-source', '--input-type=module', '-e', HOOK + program, '--', folder]
  const cwd = new URL(`../../${room}`, import.meta.url)
  const output = execFileSync(process.execPath, words, { cwd, encoding: 'utf8' })
  const urls = (JSON.parse(output) as string[]).filter((url) => url.startsWith('file:'))
  const names = urls.map(
    (url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? /\/packages\/(.+)\/src\//.exec(url)?.[1]
  )
  return new Set(names.filter((name) => name !== undefined))
}

test('a program with local files loads no HTTP client, engine, catalog or typed client', { timeout: 120_000 }, () => {
  const loaded = loadedBy(PROGRAM, 'library')
  expect(loaded).toContain('library')
  expect(UNNEEDED.filter((name) => loaded.has(name))).toEqual([])
})

test('a program that asks a daemon for a repository of the hub loads no library', { timeout: 120_000 }, () => {
  const loaded = loadedBy(ASKING, 'client')
  expect([...loaded].filter((name) => !name.startsWith('internal/'))).toEqual(['client'])
})
