import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { get, request } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'

interface OllamaLayer {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

/** A manifest as Ollama reads it. */
export interface OllamaManifest {
  readonly schemaVersion: number
  readonly mediaType: string
  readonly config: OllamaLayer
  readonly layers: readonly OllamaLayer[]
}

const MANIFEST_TYPE = 'application/vnd.docker.distribution.manifest.v2+json'
/** What its releases of 2026 send. */
const AGENT = { 'User-Agent': 'ollama/0.14.0 (amd64 linux) Go/go1.24.1', 'Accept-Encoding': 'gzip' }

/**
 * Pulls a model with the requests of Ollama's own `PullModel` (server/images.go, server/download.go, August 2026), into
 * a folder of its form: the manifest by tag, then for each blob its size by HEAD, a GET whose body is not read and whose
 * `Location` names where ranges are read from, and the ranges.
 * @param partBytes smallest part; Ollama's is 100 MB
 * @throws Error as `ollama pull` fails
 */
export async function ollamaPull(
  address: string,
  [ns, model, tag]: readonly [string, string, string],
  models: string,
  partBytes = 100e6
): Promise<OllamaManifest> {
  const base = `http://${address}/v2/${ns}/${model}`
  const answer = await ask(`${base}/manifests/${tag}`, 'GET', { Accept: MANIFEST_TYPE })
  if (answer.status === 404) throw new Error('pull model manifest: file does not exist')
  if (answer.status >= 400) throw new Error(`pull model manifest: ${answer.status}: ${answer.body}`)
  const manifest = JSON.parse(answer.body.toString()) as OllamaManifest
  mkdirSync(join(models, 'blobs'), { recursive: true })
  for (const { digest } of [...manifest.layers, manifest.config]) {
    const url = `${base}/blobs/${digest}`
    const total = Number((await ask(url, 'HEAD')).headers['content-length'])
    const from = await locationOf(url)
    const parts: Buffer[] = []
    for (let at = 0; at < total; at += partBytes) {
      const range = `bytes=${at}-${Math.min(total, at + partBytes) - 1}`
      parts.push((await ask(from, 'GET', { Range: range })).body)
    }
    const bytes = Buffer.concat(parts)
    const found = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    if (found !== digest)
      throw new Error(`digest mismatch, file must be downloaded again: want ${digest}, got ${found}`)
    writeFileSync(join(models, 'blobs', digest.replace(':', '-')), bytes)
  }
  const folder = join(models, 'manifests', address, ns, model)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, tag), answer.body)
  return manifest
}

interface Answer {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly body: Buffer
}

const ask = (url: string, method: string, headers: Record<string, string> = {}): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { ...AGENT, ...headers } }, (response) => {
      buffer(response).then(
        (body) => resolve({ status: response.statusCode!, headers: response.headers, body }),
        reject
      )
    })
    sent.on('error', reject).end()
  })

/** Go's `Response.Location`, which fails where there is none, also after 200. */
const locationOf = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    get(url, { headers: AGENT }, (response) => {
      const { statusCode, headers } = response
      response.destroy()
      if (statusCode !== 200 && statusCode !== 307) reject(new Error(`unexpected status code ${statusCode}`))
      else if (headers.location === undefined) reject(new Error('http: no Location header in response'))
      else resolve(new URL(headers.location, url).href)
    }).on('error', reject)
  })
