// The files that a mirror shows of an artifact under a name, with their text.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestDaemon } from '../support/daemon.ts'

export async function filesAt(
  daemon: Pick<TestDaemon, 'folder'>,
  door: 's3' | 'oci',
  name: string,
  quant: string
): Promise<Map<string, string>> {
  const addresses = JSON.parse(readFileSync(join(daemon.folder, 'runtime.json'), 'utf8'))
  const files = new Map<string, string>()
  const read = async (path: string, url: string): Promise<void> => {
    const answer = await fetch(url)
    files.set(path, answer.ok ? await answer.text() : `${answer.status}`)
  }
  if (door === 's3') {
    const base = `http://${addresses.s3MirrorAddress}/models`
    const prefix = `${name}/${quant}/`
    const list = await (await fetch(`${base}?list-type=2&encoding-type=url&prefix=${prefix}`)).text()
    for (const [, key] of list.matchAll(/<Key>([^<]*)<\/Key>/g))
      await read(decodeURIComponent(key!).slice(prefix.length), `${base}/${key}`)
    return files
  }
  const base = `http://${addresses.ociMirrorAddress}/v2/${name}`
  const answer = await fetch(`${base}/manifests/${quant}`)
  const { layers = [] } = (await answer.json()) as {
    layers?: { digest: string; annotations: Record<string, string> }[]
  }
  for (const { digest, annotations } of layers)
    await read(annotations['org.opencontainers.image.title']!, `${base}/blobs/${digest}`)
  return files
}
