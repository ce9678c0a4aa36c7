// Ollama both ways: it pulls from the mirror by its own requests, and svc imports the form of its registry.
import { createHash } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { makeLlamaGgufs, makeProjectorGguf } from '@svc/testkit/llama-gguf'
import { makeGguf, makeModelFolder } from '@svc/testkit/models'
import { type OllamaManifest, ollamaPull } from '@svc/testkit/ollama-pull'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { laterUndo, ok, type TestDaemon, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
let daemon: TestDaemon
let mirror: string
const GGUF = makeGguf({ metadata: { 'general.architecture': 'llama' } as never, seed: 7 })
const PROJECTOR = makeProjectorGguf()
const sha = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

beforeAll(async () => {
  const fileConfig = { swarm: { enabled: false }, mirror: { oci_addr: '127.0.0.1:0' } }
  daemon = await testDaemon({ fileConfig }, undo.later)
  const at = (name: string): string => join(daemon.folder, name)
  writeFileSync(at('sees-q8_0.gguf'), GGUF)
  writeFileSync(at('mmproj-sees-f16.gguf'), PROJECTOR)
  await ok(daemon, 'import', 'local', 'sees-q8_0.gguf', 'mmproj-sees-f16.gguf', '--as', 'acme/sees', '--aux', 'all')
  for (const [i, bytes] of makeLlamaGgufs({ shards: 2 }).entries())
    writeFileSync(at(`split-q8_0-0000${i + 1}-of-00002.gguf`), bytes)
  await ok(daemon, 'import', 'local', 'split-q8_0-00001-of-00002.gguf', '--as', 'acme/split')
  makeModelFolder(at('folder'), {})
  mirror = JSON.parse(readFileSync(at('runtime.json'), 'utf8')).ociMirrorAddress
}, 60_000)
afterAll(undo.all)

it('ollama pull gets a model from the mirror, with its projector, by ranges', async () => {
  const models = join(daemon.folder, 'pulled')
  for (const tag of ['q8_0', 'Q8_0']) {
    const { mediaType, config, layers } = await ollamaPull(mirror, ['acme', 'sees', tag], models, 1_000)
    expect(mediaType).toBe('application/vnd.docker.distribution.manifest.v2+json')
    expect(layers).toEqual([
      { mediaType: 'application/vnd.ollama.image.model', digest: sha(GGUF), size: GGUF.length },
      { mediaType: 'application/vnd.ollama.image.projector', digest: sha(PROJECTOR), size: PROJECTOR.length }
    ])
    const facts = JSON.parse(readFileSync(join(models, 'blobs', config.digest.replace(':', '-')), 'utf8'))
    expect(facts).toMatchObject({ model_format: 'gguf', model_family: 'llama', file_type: 'Q8_0', os: 'linux' })
  }
  // what Ollama then has is what svc adopt reads
  const adopted = await testDaemon()
  cpSync(models, join(adopted.folder, 'models'), { recursive: true })
  await ok(adopted, 'adopt', 'models', '--yes')
  expect(await ok(adopted, 'ls', '-q')).toMatch(/sees.*:q8_0/)
})

it('a split model has no form for Ollama, and other clients still get theirs', async () => {
  const models = join(daemon.folder, 'none')
  await expect(ollamaPull(mirror, ['acme', 'split', 'q8_0'], models)).rejects.toThrow('file does not exist')
  for (const accept of [
    '*/*',
    'application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json'
  ]) {
    const answer = await fetch(`http://${mirror}/v2/acme/split/manifests/q8_0`, { headers: { accept } })
    expect(answer.headers.get('content-type'), accept).toBe('application/vnd.oci.image.manifest.v1+json')
  }
})

interface Layer {
  readonly mediaType: string
  readonly bytes: Buffer
}

/** A registry with one artifact, as `curl` shows Ollama's and Docker's: no layer has a name. */
async function registry(name: string, mediaType: string, config: Layer, layers: readonly Layer[]): Promise<string> {
  const described = ({ mediaType, bytes }: Layer) => ({ mediaType, digest: sha(bytes), size: bytes.length })
  const body = Buffer.from(
    JSON.stringify({ schemaVersion: 2, mediaType, config: described(config), layers: layers.map(described) })
  )
  const blobs = new Map([config, ...layers].map(({ bytes }) => [sha(bytes), bytes]))
  const server = createServer((request, response) => {
    const [, repository, what, wanted = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/(.+)$/.exec(request.url!) ?? []
    const [path, tag] = name.split(':')
    const isManifest = what === 'manifests' && [tag, sha(body)].includes(wanted)
    const found = repository !== path ? undefined : isManifest ? body : blobs.get(wanted)
    if (found === undefined) return void response.writeHead(404).end()
    // the type of a manifest is in its body alone
    response.writeHead(200, { 'content-length': found.length, 'content-type': 'text/plain; charset=utf-8' })
    response.end(request.method === 'HEAD' ? undefined : found)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}/${name}`
}

const ollama = (kind: string, bytes: string | Buffer): Layer => ({
  mediaType: `application/vnd.ollama.image.${kind}`,
  bytes: Buffer.from(bytes)
})
const docker = (kind: string, bytes: string | Buffer): Layer => ({
  mediaType: `application/vnd.docker.ai.${kind}`,
  bytes: Buffer.from(bytes)
})
const facts = (value: unknown, mediaType = 'application/vnd.docker.container.image.v1+json'): Layer => ({
  mediaType,
  bytes: Buffer.from(JSON.stringify(value))
})
const DOCKER = 'application/vnd.docker.distribution.manifest.v2+json'
const OCI = 'application/vnd.oci.image.manifest.v1+json'

it('a model of its registry is imported by the name that Ollama has for it, and goes out again as it came', async () => {
  const texts = [
    ollama('template', '{{ .Prompt }}'),
    ollama('license', 'MIT License'),
    ollama('params', '{"stop":["x"]}')
  ]
  const layers = [ollama('model', GGUF), ollama('projector', PROJECTOR), ...texts]
  const config = facts({ model_format: 'gguf', model_family: 'llama', file_type: 'Q8_0' })
  const source = await registry('library/tiny3:8b', DOCKER, config, layers)
  await ok(daemon, 'import', 'ollama', source)
  const ref = (await ok(daemon, 'ls', '-q')).split('\n').find((each) => each.includes('tiny3'))!
  expect(ref).toMatch(/tiny3-8b:q8_0$/)
  const folder = await ok(daemon, 'view', ref, join(daemon.folder, 'view of tiny3'))
  expect(
    readdirSync(folder)
      .filter((name) => !name.startsWith('.'))
      .sort()
  ).toEqual(['LICENSE', 'mmproj-tiny3-8b-q8_0.gguf', 'params.json', 'template', 'tiny3-8b-q8_0.gguf'].sort())
  const [repo, quant] = ref.split(':') as [string, string]
  const [ns, name] = repo.split('/') as [string, string]
  const pulled = await ollamaPull(mirror, [ns, name, quant], join(daemon.folder, 'again'))
  const kinds = (all: OllamaManifest['layers']) => all.map(({ mediaType, digest }) => `${mediaType} ${digest}`).sort()
  expect(kinds(pulled.layers)).toEqual(
    kinds(layers.map(({ mediaType, bytes }) => ({ mediaType, digest: sha(bytes), size: bytes.length })))
  )
})

it("one of Docker's models from before annotations is imported", async () => {
  const config = facts(
    { config: { format: 'gguf', quantization: 'MOSTLY/Q8_0' } },
    'application/vnd.docker.ai.model.config.v0.1+json'
  )
  const layers = [docker('gguf.v3', GGUF), docker('license', 'Apache License'), docker('mmproj', PROJECTOR)]
  const source = await registry('ai/smol:latest', OCI, config, layers)
  await ok(daemon, 'import', 'oci', source, '--as', 'ai/smol')
  const folder = await ok(daemon, 'view', 'ai/smol:q8_0', join(daemon.folder, 'view of smol'))
  const names = readdirSync(folder).filter((name) => !name.startsWith('.'))
  expect(names.sort()).toEqual(['LICENSE', 'mmproj-smol-q8_0.gguf', 'smol-q8_0.gguf'])
})

it('an ordinary image, a model of single tensors and a name of the hub are refused with the reason', async () => {
  const layer = { mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip', bytes: Buffer.from('tar') }
  const image = await registry('library/app:latest', DOCKER, facts({}), [layer])
  const refused = await daemon.svc('import', 'oci', image, '--as', 'me/app')
  expect(refused).toMatchObject({ code: 1 })
  expect(refused.stderr).toContain('ordinary image')
  const tensors = await registry('library/mlx:latest', DOCKER, facts({}), [ollama('tensor', 'x')])
  expect((await daemon.svc('import', 'ollama', tensors)).stderr).toContain('tensor by tensor')
  const hub = await daemon.svc('import', 'ollama', 'hf.co/Qwen/Qwen3-8B-GGUF:Q8_0')
  expect(hub.code).toBe(2)
  expect(hub.stderr).toContain('svc import hf Qwen/Qwen3-8B-GGUF:Q8_0')
})
