import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient } from '@svc/client'
import { haveLibtorrent } from '@svc/testkit/v1-peer'
import { describe, expect, test } from 'vitest'
import {
  blobsOf,
  catalog,
  folder,
  freshSources,
  GGUF,
  hub,
  line,
  listed,
  peer,
  portOf,
  pull,
  REPO,
  start,
  weights
} from './catalog-fixture.ts'

freshSources()

describe.skipIf(!haveLibtorrent)('with a libtorrent seeder', () => {
  test('the daemon is the only seeder left, before and after a restart', async () => {
    const files = {
      [GGUF]: weights(500_000),
      'README.md': Buffer.from('skipped by the store, needed by the swarm'),
      'tokenizer.json': Buffer.from('{}')
    }
    const { seed } = await listed(files)
    const { client, daemon, root } = await start()
    expect((await pull(client, { peers: [seed.address] })).state).toBe('done')
    await seed.stop()
    const copies = (await blobsOf(root)).length

    const leech = async (port: number): Promise<void> => {
      const target = await folder()
      const leecher = await peer({ mode: 'leech', folder: target, torrent: seed.torrent, peers: [`127.0.0.1:${port}`] })
      await leecher.until((state) => state.seeding)
      for (const [path, bytes] of Object.entries(files))
        expect((await readFile(join(target, 'model', path))).equals(bytes)).toBe(true)
    }
    await leech(await portOf(client, seed.infohash))
    await client.close()
    await daemon.close()
    const again = await start({ root })
    await leech(await portOf(again.client, seed.infohash))
    expect((await blobsOf(root)).length).toBe(copies)
  })

  test('kill -9 in mid-pull: the next one resumes there', async () => {
    const content = weights(4 << 20)
    const commit = hub.commit({ id: REPO, files: [{ path: GGUF, content, lfs: true }] })
    const source = await folder()
    await mkdir(join(source, 'model'))
    await writeFile(join(source, 'model', GGUF), content)
    const slow = await peer({
      mode: 'seed',
      folder: source,
      name: 'model',
      piece_length: 65_536,
      upload_limit: 1 << 20
    })
    catalog.list([line(slow.infohash, GGUF, commit)])
    const root = await folder()
    const socketPath = join(await folder(), 's.sock')
    const child = spawn(
      process.execPath,
      [
        '--conditions=svc-source',
        fileURLToPath(new URL('./daemon-child.ts', import.meta.url)),
        root,
        socketPath,
        hub.endpoint,
        catalog.endpoint
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] }
    )
    await once(child.stdout, 'data')
    const first = createClient({ socketPath })
    const accepted = await first.importCatalog({ repo: REPO, peers: [slow.address] })
    for await (const job of first.watchJob(accepted.id, { intervalMs: 20 })) if ((job.bytesDone ?? 0) > 2 << 20) break
    child.kill('SIGKILL')
    await once(child, 'exit')
    await first.close()
    await slow.stop()

    const { client } = await start({ root })
    expect(await blobsOf(root)).toEqual([])
    const rest = await peer({ mode: 'seed', folder: source, name: 'model', piece_length: 65_536 })
    expect((await pull(client, { peers: [rest.address] })).state).toBe('done')
    const { uploaded } = await rest.until((state) => state.uploaded > 0)
    expect(uploaded).toBeLessThan(content.length - (512 << 10))
  })

  test('a model that the hub has restricted by the next pull leaves its swarm, also after a restart', async () => {
    const content = weights(300_000)
    const { seed } = await listed({ [GGUF]: content })
    const { client, daemon, root } = await start()
    expect((await pull(client, { peers: [seed.address] })).state).toBe('done')
    await portOf(client, seed.infohash)
    const files = [{ path: GGUF, content }]
    const gated = hub.commit({ id: REPO, gated: 'manual', files })
    catalog.list([line(seed.infohash, GGUF, gated)])
    expect((await pull(client, { peers: [seed.address] })).state).toBe('done')
    expect((await client.status()).catalog?.torrents).toEqual([])
    await client.close()
    await daemon.close()
    const again = await start({ root })
    expect((await again.client.status()).catalog?.torrents ?? []).toEqual([])
  })

  test('a model that the hub restricts leaves its swarm, even if the pull that noticed fails', async () => {
    const { seed } = await listed({ [GGUF]: weights(300_000) })
    const { client } = await start()
    expect((await pull(client, { peers: [seed.address] })).state).toBe('done')
    await portOf(client, seed.infohash)
    // the torrent has other bytes than this revision
    const gated = hub.commit({ id: REPO, gated: 'manual', files: [{ path: GGUF, content: weights(300_000) }] })
    catalog.list([line(seed.infohash, GGUF, gated)])
    expect((await pull(client, { peers: [seed.address] })).state).toBe('failed')
    expect((await client.status()).catalog?.torrents).toEqual([])
  })

  test('has its own upload limit', async () => {
    const content = weights(2 << 20)
    const { seed } = await listed({ [GGUF]: content })
    const { client } = await start({ file: { catalog: { upload_limit: 1 << 20 }, swarm: { upload_limit: 0 } } })
    expect((await pull(client, { peers: [seed.address] })).state).toBe('done')
    await seed.stop()
    const port = await portOf(client, seed.infohash)
    const leecher = await peer({
      mode: 'leech',
      folder: await folder(),
      torrent: seed.torrent,
      peers: [`127.0.0.1:${port}`]
    })
    const begun = performance.now()
    await leecher.until((state) => state.seeding)
    expect((2 << 20) / ((performance.now() - begun) / 1000)).toBeLessThan(1.6 * (1 << 20))
  })

  test('without seeders the hub completes it: the anchor decides, not the source', async () => {
    const { seed } = await listed({ [GGUF]: weights(300_000), 'config.json': Buffer.from('{}') }, { seeds: 0 })
    await seed.stop()
    const { client } = await start()
    const job = await pull(client)
    expect(job).toMatchObject({ state: 'done', result: { quants: ['q8_0'] } })
  })
})
