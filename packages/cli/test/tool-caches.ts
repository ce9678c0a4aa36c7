// Caches in the layouts of the tools that `svc adopt` knows.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

export const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')
export const gitSha1 = (bytes: string | Buffer): string =>
  createHash('sha1')
    .update(`blob ${Buffer.byteLength(bytes)}\0`)
    .update(bytes)
    .digest('hex')
export function put(path: string, bytes: string | Buffer): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
}
export const COMMIT = '0123456789abcdef0123456789abcdef01234567'

/** A hub cache as `huggingface_hub` writes it. */
export function putHub(
  root: string,
  repo: string,
  files: Readonly<Record<string, string | Buffer>>,
  commit = COMMIT
): void {
  const folder = join(root, `models--${repo.replace('/', '--')}`)
  put(join(folder, 'refs/main'), commit)
  for (const [name, bytes] of Object.entries(files)) {
    const blob = join(folder, 'blobs', /gguf|safetensors/.test(name) ? sha256(bytes) : gitSha1(bytes))
    put(blob, bytes)
    const link = join(folder, 'snapshots', commit, name)
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(relative(dirname(link), blob), link)
  }
}

/** @param model in the library, or with a prefix: `ns/model`, `host/ns/model` */
export function putOllama(root: string, model: string, tag: string, weights: Buffer, quant = 'Q8_0'): void {
  const config = JSON.stringify({ model_format: 'gguf', file_type: quant })
  for (const bytes of [weights, config]) put(join(root, `blobs/sha256-${sha256(bytes)}`), bytes)
  const entry = (mediaType: string, bytes: string | Buffer) => ({
    mediaType,
    digest: `sha256:${sha256(bytes)}`,
    size: Buffer.byteLength(bytes)
  })
  const manifest = {
    schemaVersion: 2,
    config: entry('application/vnd.docker.container.image.v1+json', config),
    layers: [entry('application/vnd.ollama.image.model', weights)]
  }
  const place = ['registry.ollama.ai', 'library'].slice(0, Math.max(0, 3 - model.split('/').length))
  put(join(root, 'manifests', ...place, model, tag), JSON.stringify(manifest))
}

export function putDocker(root: string, tag: string, bytes: Buffer): void {
  put(join(root, 'blobs/sha256', sha256(bytes)), bytes)
  const layer = {
    mediaType: 'application/vnd.docker.ai.gguf.v3',
    digest: `sha256:${sha256(bytes)}`,
    size: bytes.length
  }
  const manifest = JSON.stringify({ schemaVersion: 2, layers: [layer], annotations: { tag } })
  put(join(root, 'manifests/sha256', sha256(manifest)), manifest)
  const list = join(root, 'models.json')
  const { models } = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : { models: [] }
  put(list, JSON.stringify({ models: [...models, { id: `sha256:${sha256(manifest)}`, tags: [tag], files: [] }] }))
}

/** @param model below the folder of its kind, such as `huggingface/org/name` */
export function putRamaLama(root: string, model: string, tag: string, name: string, bytes: Buffer): void {
  put(join(root, model, 'blobs', `sha256-${sha256(bytes)}`), bytes)
  const files = [{ hash: `sha256:${sha256(bytes)}`, name, type: 'model' }]
  put(join(root, model, 'refs', `${tag}.json`), JSON.stringify({ hash: 'x', path: 'y', files }))
}

/** The flat cache of llama.cpp, with its note of where the file came from. */
export function putLlama(root: string, repo: string, name: string, bytes: Buffer): void {
  const [org, model] = repo.split('/') as [string, string]
  put(join(root, `${org}_${model}_${name}`), bytes)
  const ggufFile = { rfilename: name, size: bytes.length, lfs: { sha256: sha256(bytes) } }
  put(join(root, `manifest=${org}=${model}=latest.json`), JSON.stringify({ ggufFile }))
}
