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

const PROGRAM = `
import { registerHooks } from 'node:module'
const loaded = new Set()
registerHooks({ load: (url, context, next) => (loaded.add(url), next(url, context)) })
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
console.log(JSON.stringify([...loaded]))
`

test('a program with local files loads no HTTP client, engine, catalog or typed client', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-loaded-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'tiny-q8_0.gguf'), 'GGUF, but for its first four bytes')
  const output = execFileSync(
    process.execPath,
    ['--conditions=svc-source', '--input-type=module', '-e', PROGRAM, '--', folder],
    { cwd: new URL('..', import.meta.url), encoding: 'utf8' }
  )
  const urls = (JSON.parse(output) as string[]).filter((url) => url.startsWith('file:'))
  const names = urls.map(
    (url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? /\/packages\/(.+)\/src\//.exec(url)?.[1]
  )
  expect(names).toContain('library')
  expect(names.filter((name) => UNNEEDED.includes(name ?? ''))).toEqual([])
})
