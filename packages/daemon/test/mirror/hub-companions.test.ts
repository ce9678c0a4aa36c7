// The hub's mirror shows the companions that the hub has, whatever other imports of the artifact brought.

import { sealCompanions } from '@svc/manifest'
import { expect, test, vi } from 'vitest'
import { oneChunk } from '../../../internal/state/src/small-blob.ts'
import { fakeHub, importRepo, rigOf, undoAfterTests } from '../sources/hub/fixtures.ts'
import { gguf } from '../support/models.ts'

vi.setConfig({ testTimeout: 30_000 })
undoAfterTests()

const ID = 'Acme/Model'

test.each(['before', 'after'] as const)(
  "companions that an archive brought %s the artifact came from the hub are not the hub's",
  async (when) => {
    const files = [
      { path: 'model-q8_0.gguf', content: gguf(3_000, 2) },
      { path: 'README.md', content: Buffer.from('# the hub’s') }
    ]
    const rig = await rigOf(await fakeHub({ repos: [{ id: ID, files }] }), { mirror: true })
    const { result } = await importRepo(rig, ID)
    const { artifacts, store } = rig.daemon.context
    const keep = async (bytes: Uint8Array) => (await store.ingest(oneChunk(bytes), { sizeBytes: bytes.length })).digest
    const evil = Buffer.from('# somebody else’s')
    const sealed = sealCompanions({
      files: [{ path: 'README.md', size: evil.length, digest: await keep(evil) }],
      omitted: []
    })
    await keep(sealed.bytes)
    const fromHub = (await artifacts.read(result!.manifests[0] as never))!
    expect(fromHub.source.companions).toBe(result!.companions)
    const archive = { ...fromHub, source: { kind: 'oci' } as const, companions: { 'evil/model': sealed.digest } }
    await artifacts.forget(fromHub.manifestDigest)
    // a pin does not change the source
    const imports = when === 'before' ? [archive, fromHub] : [fromHub, { ...archive, source: { kind: 'bt' } as const }]
    for (const each of imports) await artifacts.record(each)
    const answer = await fetch(`http://${rig.mirror}/${ID}/resolve/main/README.md`)
    expect([answer.status, await answer.text()]).toEqual([200, '# the hub’s'])
  }
)
