// What an artifact says about its own name is a claim: svc takes a name from what its user packed, from --as or from an answer.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { makeGguf } from '@svc/testkit/models'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { laterUndo, manifestOf, ok, type Ran, type TestDaemon, testDaemon, typing } from './support.ts'

const undo = laterUndo()
const REF = 'me/mine:q8_0'
let daemon: TestDaemon
let mine: string
/** The environment of a user with state, who packed `own`. */
let env: { readonly XDG_STATE_HOME: string }
let own: string
/** What a stranger packed from other files, and named as it likes. */
let theirs: string
let theirQ4: string

interface Edited {
  readonly annotations: Record<string, string>
}

/** Changes the manifest of a layout with one model, as whoever packs one can. */
function edit(layout: string, change: (manifest: Edited) => void): void {
  const read = (path: string) => JSON.parse(readFileSync(join(layout, path), 'utf8'))
  const index = read('index.json')
  const manifest = read(`blobs/sha256/${index.manifests[0].digest.slice('sha256:'.length)}`)
  change(manifest)
  const bytes = Buffer.from(JSON.stringify(manifest))
  const hex = createHash('sha256').update(bytes).digest('hex')
  writeFileSync(join(layout, 'blobs/sha256', hex), bytes)
  index.manifests[0] = { ...index.manifests[0], digest: `sha256:${hex}`, size: bytes.length }
  writeFileSync(join(layout, 'index.json'), JSON.stringify(index))
}
const claim = (ref: string, pin = mine, layout = theirs) =>
  edit(layout, ({ annotations }) => Object.assign(annotations, { 'svc.ref': ref, 'svc.manifest': pin }))

const importing = (...words: string[]): Promise<Ran> => daemon.svcWith(['import', 'oci', ...words], { env })
const answering = (answers: readonly string[], ...words: string[]): Promise<Ran> =>
  daemon.svcWith(['import', 'oci', ...words], { env, columns: 200, stdin: typing(...answers) })
const names = async (): Promise<string[]> => (await ok(daemon, 'ls', '-q')).split('\n').sort()

beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
  env = { XDG_STATE_HOME: join(daemon.folder, 'state') }
  ;[own, theirs, theirQ4] = ['own', 'their layout', 'q4'].map((name) => join(daemon.folder, name)) as [
    string,
    string,
    string
  ]
  const stranger = await testDaemon({}, undo.later)
  for (const [seed, { folder }] of [daemon, stranger].entries())
    writeFileSync(join(folder, 'm-q8_0.gguf'), makeGguf({ seed }))
  await ok(daemon, 'import', 'local', 'm-q8_0.gguf', '--as', 'me/mine')
  await ok(stranger, 'import', 'local', 'm-q8_0.gguf', '--as', 'me/mine')
  expect(await daemon.svcWith(['export', 'oci', REF, own], { env })).toMatchObject({ code: 0 })
  await ok(stranger, 'export', 'oci', REF, theirs)
  writeFileSync(join(stranger.folder, 'm-q4_k_m.gguf'), makeGguf({ seed: 4 }))
  await ok(stranger, 'import', 'local', 'm-q4_k_m.gguf', '--as', 'me/mine')
  await ok(stranger, 'export', 'oci', 'me/mine:q4_k_m', theirQ4)
  mine = await manifestOf(daemon, REF)
})
afterAll(undo.all)

it('an archive that names a model of the owner takes nothing, and the refusal has the command to type', async () => {
  // also one that says that it was packed from the owner's own manifest
  for (const pin of [mine, `sha256:${'0'.repeat(64)}`]) {
    claim(REF, pin)
    const refused = await importing(theirs)
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain(`svc import oci '${theirs}' --as me/mine`)
    expect(await importing(theirs, '--json')).toMatchObject({ code: 2 })
  }
  expect([await names(), await manifestOf(daemon, REF)]).toEqual([[REF], mine])
})

it('an archive does not add a quant to a repository of the owner', async () => {
  for (const ref of ['me/mine:q4_k_m', REF]) {
    claim(ref, mine, theirQ4)
    expect(await importing(theirQ4)).toMatchObject({ code: 2 })
  }
  expect(await names()).toEqual([REF])
})

it('the name that the owner types is taken', async () => {
  claim(REF)
  expect(await importing(theirs, '--as', 'their/model')).toMatchObject({ code: 0, stdout: 'their/model:q8_0\n' })
  await ok(daemon, 'rm', 'their/model')
})

it('a person at a terminal sees the claim, and decides', async () => {
  claim('their/claim:q8_0', await manifestOf(daemon, REF))
  const silent = await answering([], theirs)
  expect(silent).toMatchObject({ code: 2, stdout: '' })
  expect(silent.stderr).toContain('says that it is their/claim:q8_0')
  expect(await names()).toEqual([REF])
  expect(await answering(['by/answer'], theirs)).toMatchObject({ code: 0, stdout: 'by/answer:q8_0\n' })
  expect(await answering([''], theirs)).toMatchObject({ code: 0, stdout: 'their/claim:q8_0\n' })
  // a confirmed claim still replaces nothing without a second answer
  claim(REF)
  expect(await answering(['', 'n'], theirs)).toMatchObject({ code: 2 })
  expect(await manifestOf(daemon, REF)).toBe(mine)
  await ok(daemon, 'rm', 'by/answer', 'their/claim')
})

it.each([
  'me',
  'me/mine',
  '../../x:q8_0',
  'svc/x:q8_0',
  'me/mine:q8_0:x y',
  'me/\u001b[31mred:q8_0',
  'me/mine:no quant'
])('what no model can be named is no claim: %j', async (said) => {
  claim(said)
  const refused = await importing(theirs)
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--as my/') })
  expect(refused.stderr).not.toContain('says')
})

it('what this user packed keeps its name; a copy in which one byte differs does not', async () => {
  expect(await importing(own)).toMatchObject({ code: 0, stdout: `${REF}\n` })
  expect(await daemon.svc('import', 'oci', own)).toMatchObject({ code: 2 })
  edit(own, ({ annotations }) => Object.assign(annotations, { more: '' }))
  expect(await importing(own)).toMatchObject({ code: 2 })
})

it('the models of one archive are imported by the commands of the refusal', async () => {
  await ok(daemon, 'import', 'local', 'm-q8_0.gguf', '--as', 'me/second')
  const archive = join(daemon.folder, 'both.tar')
  const exported = await daemon.svc('export', 'oci', REF, 'me/second:q8_0', archive)
  const refused = await importing(archive)
  expect(refused.code).toBe(2)
  const commands = /svc import oci .*$/m.exec(refused.stderr)![0]
  expect(exported.stderr).toContain(commands)
  for (const ref of [REF, 'me/second:q8_0']) await ok(daemon, 'rm', ref)
  for (const command of commands.split(' && '))
    expect(await daemon.svc(...command.split(' ').slice(1))).toMatchObject({ code: 0 })
  expect(await names()).toEqual([REF, 'me/second:q8_0'])
  await ok(daemon, 'rm', 'me/second')
})

it('a registry that answers differently the second time cannot give a name to other bytes', async () => {
  const [first, second] = [join(daemon.folder, 'first'), theirs]
  expect(await daemon.svcWith(['export', 'oci', REF, first], { env })).toMatchObject({ code: 0 })
  claim(REF)
  const tops = [first, second].map(
    (layout) => JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests[0]
  )
  let asked = 0
  const server = createServer(({ url = '' }, response) => {
    const [, what, name = ''] = /^\/v2\/team\/m\/(manifests|blobs)\/(.+)$/.exec(url) ?? []
    const digest: string = name.startsWith('sha256:') ? name : tops[Math.min(1, asked++)].digest
    const hex = digest.slice('sha256:'.length)
    const found = [first, second].flatMap((layout) => {
      try {
        return [readFileSync(join(layout, 'blobs/sha256', hex))]
      } catch {
        return []
      }
    })[0]
    if (found === undefined) return response.writeHead(404).end()
    if (what === 'manifests') response.setHeader('content-type', tops[0].mediaType)
    response.writeHead(200, { 'content-length': found.length }).end(found)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  await ok(daemon, 'rm', REF)
  const image = `127.0.0.1:${(server.address() as AddressInfo).port}/team/m:q8_0`
  expect(await importing(image)).toMatchObject({ code: 0, stdout: `${REF}\n` })
  expect([asked, await manifestOf(daemon, REF)]).toEqual([1, mine])
})
