// Two artifacts whose torrents have one name, since 12 digits of their digests are the same: nobody gets a file of the other.
import { type Sealed, sealManifest, torrentOf } from '@svc/manifest'
import { leafLayer, piecesRoot, sha256, toHex } from '@svc/metainfo'
import { digestFromBytes } from '@svc/ref'
import { expect, onTestFinished, test } from 'vitest'
import { writeDocument } from '../../../library/src/import/seal.ts'
import { WebseedListener } from '../../../sharing/src/webseed-listener.ts'
import { testDaemon } from '../support/daemon.ts'

function sealed(text: string): Sealed<undefined> {
  const bytes = Buffer.from(text)
  return { document: undefined, bytes, digest: digestFromBytes(sha256(bytes)) }
}

function entryOf(kind: 'config' | 'weights.gguf', name: string, text: string) {
  const { bytes, digest } = sealed(text)
  const merkleRoot = digestFromBytes(piecesRoot(leafLayer(bytes), bytes.length)!)
  return { kind, name, size: bytes.length, digest, bt: { merkleRoot } }
}

function artifactOf(weights: string, n: string) {
  const files = [entryOf('config', 'modelconfig.json', '{}'), entryOf('weights.gguf', 'x-q8_0.gguf', weights)]
  const manifest = sealManifest(files, { n })
  return { manifest, torrent: torrentOf(manifest), layers: new Map<string, Uint8Array>() }
}

// Found by trying 60 million
const [one, two] = [artifactOf('one', '22013372'), artifactOf('two', '03521062')]

test('artifacts with one torrent name are told apart by whole digests', async () => {
  const { context } = (await testDaemon()).running
  for (const each of [sealed('{}'), sealed('one'), sealed('two'), one.manifest, two.manifest])
    await writeDocument(context.store, each)
  const webseed = await WebseedListener.listen(context, { host: '127.0.0.1', port: 0 })
  onTestFinished(() => webseed.close())
  const { name } = one.torrent
  expect(two.torrent.name).toBe(name)
  const ask = async (path: string): Promise<string | number> => {
    const answer = await fetch(`http://127.0.0.1:${webseed.address.port}/${path}`)
    const text = await answer.text()
    return answer.ok ? text : answer.status
  }
  const manifestOf = ({ manifest: { digest } }: typeof one) => ask(`${name}/manifest/sha256-${digest.slice(7)}`)
  const torrentStatus = async ({ torrent: { infohash } }: typeof one) =>
    typeof (await ask(`bt/${toHex(infohash)}.torrent`))

  webseed.serve(one)
  expect(await ask(`${name}/x-q8_0.gguf`)).toBe('one')
  webseed.serve(two)
  expect(await ask(`${name}/x-q8_0.gguf`)).toBe(404)
  expect(await ask(`${name}/modelconfig.json`)).toBe('{}')
  for (const each of [one, two]) {
    expect(await manifestOf(each)).toBe(Buffer.from(each.manifest.bytes).toString())
    expect(await torrentStatus(each)).toBe('string')
  }
  webseed.withdraw(two.torrent)
  expect([await ask(`${name}/x-q8_0.gguf`), await manifestOf(two), await torrentStatus(two)]).toEqual([
    'one',
    404,
    'number'
  ])
  webseed.serve(two)
  webseed.serve(two)
  webseed.withdraw(one.torrent)
  expect([await ask(`${name}/x-q8_0.gguf`), await manifestOf(one)]).toEqual(['two', 404])
  webseed.withdraw(two.torrent)
  expect(await ask(`${name}/modelconfig.json`)).toBe(404)
})
