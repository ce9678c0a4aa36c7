import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { leafLayer, pieceLayer, piecesRoot } from '@svc/metainfo'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { describe, expect, it } from 'vitest'
import { testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

describe('leaf layers', () => {
  it('are recomputed if lost or damaged, and never used unverified', async () => {
    const api = await testDaemon()
    const content = gguf(3_000_000)
    await api.import([writeFiles(join(api.folder, 'm'), { 'm-q4_0.gguf': content })])
    const digest = (await api.open('svc:///me/model:q4_0')).body.files[3].digest as Sha256Digest
    const { leafLayers } = api.running.context
    const cached = join(api.root, 'cache/leaves', digest.slice(7))
    const wanted = leafLayer(content)
    const root = digestFromBytes(piecesRoot(wanted, content.length))
    const layer = Buffer.from(pieceLayer(wanted, content.length, 1 << 20))
    const damages: (() => void)[] = [
      () => undefined,
      () => rmSync(cached),
      () => writeFileSync(cached, ''),
      () => writeFileSync(cached, readFileSync(cached).fill(1)),
      () => writeFileSync(cached, wanted.subarray(32))
    ]
    for (const damage of damages) {
      damage()
      expect(Buffer.from(await leafLayers.pieceLayer(digest, content.length, root, 1 << 20)).equals(layer)).toBe(true)
      expect(readFileSync(cached).equals(wanted)).toBe(true)
    }
    expect(Buffer.from((await leafLayers.window(digest, content.length, 3, 9))!)).toEqual(
      Buffer.from(wanted.subarray(3 * 32, 9 * 32))
    )
    writeFileSync(cached, wanted.subarray(32))
    expect(await leafLayers.window(digest, content.length, 3, 9)).toBeUndefined()
    rmSync(cached)
    expect(await leafLayers.window(digest, content.length, 3, 9)).toBeUndefined()
    const wrong = digestFromBytes(new Uint8Array(32).fill(3))
    await expect(leafLayers.pieceLayer(digest, content.length, wrong, 1 << 20)).rejects.toMatchObject({
      code: 'E_CORRUPTION'
    })
  })
})
