import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { parseTorrent, toHex } from '@svc/metainfo'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openTarget, parseListing, publish, readerUrl, type Target } from '../src/index.ts'
import { failure, makeModel, temporaryFolder } from './fixture.ts'

async function folder(path: string): Promise<Target> {
  const target = await openTarget({ kind: 'folder', path })
  onTestFinished(() => target.close())
  return target
}

describe('a folder', () => {
  test('has the paths that webseed clients request, a .torrent and the lists; a second run writes nothing', async () => {
    const [scratch, out] = [temporaryFolder(), join(temporaryFolder(), 'www/models')]
    const model = makeModel(scratch)
    const url = 'https://models.example/dir/'
    const publication = await model.publication({ url, trackers: ['udp://tracker.example:1'] })
    const target = await folder(out)
    const { sentBytes } = await publish([publication], target, { url })
    for (const [path, bytes] of model.files)
      expect(readFileSync(join(out, publication.name, path)).equals(bytes), path).toBe(true)
    const torrent = parseTorrent(readFileSync(join(out, publication.torrentKey)))
    expect(`btmh:1220${toHex(torrent.info.infohash)}`).toBe(publication.infohash)
    expect(torrent).toMatchObject({
      webseeds: [url],
      trackers: [['udp://tracker.example:1']],
      pieceLayers: { missing: [] }
    })
    expect(publication.magnet).toContain(`ws=${encodeURIComponent(url)}`)
    const inodes = () => publication.objects.map(({ key }) => statSync(join(out, key)).ino)
    const before = inodes()
    expect(await publish([publication], target, { url })).toMatchObject({ sentBytes: 0, presentBytes: sentBytes })
    expect(inodes()).toEqual(before)
    expect(await readerUrl(target, undefined)).toBe(url)
    await target.close()
    expect(readdirSync(out).sort()).toEqual(['bt', 'index.html', 'index.json', publication.name])
  })

  test('resumes an interrupted run, repairs damaged files, and rewrites no intact one', async () => {
    const [scratch, out] = [temporaryFolder(), temporaryFolder()]
    const publication = await makeModel(scratch).publication()
    const [config, weights] = ['modelconfig.json', '.gguf'].map(
      (end) => publication.objects.find(({ key }) => key.endsWith(end))!
    )
    const bytes = readFileSync((weights!.content as { path: string }).path)
    const partial = join(out, '.svc-publish', `${weights!.digest.slice(7)}.partial`)
    mkdirSync(dirname(partial))
    for (const left of [bytes.subarray(0, 1_000_000), Buffer.alloc(1_500_000, 1), Buffer.concat([bytes, bytes])]) {
      rmSync(join(out, publication.name), { recursive: true, force: true })
      writeFileSync(partial, left)
      const target = await folder(out)
      await publish([publication], target)
      await target.close()
      expect(readFileSync(join(out, weights!.key)).equals(bytes)).toBe(true)
      mkdirSync(dirname(partial))
    }
    writeFileSync(join(out, weights!.key), Buffer.alloc(bytes.length))
    writeFileSync(join(out, config!.key), '{ }')
    const target = await folder(out)
    expect(await publish([publication], target)).toMatchObject({ sentBytes: bytes.length + config!.sizeBytes })
    expect(readFileSync(join(out, weights!.key)).equals(bytes)).toBe(true)
  })

  test('a damaged local file is not published, and its model is not listed', async () => {
    const [scratch, out] = [temporaryFolder(), temporaryFolder()]
    const publication = await makeModel(scratch).publication()
    const weights = publication.objects.find(({ key }) => key.endsWith('.gguf'))!
    const { path } = weights.content as { path: string }
    const bytes = readFileSync(path)
    bytes[5]! ^= 1
    writeFileSync(path, bytes)
    const target = await folder(out)
    expect((await failure(publish([publication], target))).code).toBe('E_DIGEST_MISMATCH')
    expect(existsSync(join(out, weights.key))).toBe(false)
    expect(existsSync(join(out, 'index.json'))).toBe(false)
    expect(existsSync(join(out, publication.torrentKey))).toBe(false)
  })

  test('several models are listed together; a model of the same name replaces the earlier one', async () => {
    const [scratch, out] = [temporaryFolder(), temporaryFolder()]
    const target = await folder(out)
    const small = (seed: number, ref: string) => makeModel(scratch, { seed, ref, sizeBytes: 1000 }).publication()
    const [one, two, newer] = [await small(1, 'me/one:raw'), await small(5, 'me/two:raw'), await small(9, 'me/one:raw')]
    await publish([one], target)
    await publish([two], target)
    const listed = (): string[] =>
      parseListing(readFileSync(join(out, 'index.json')), out).models.map(({ ref, manifest }) => `${ref} ${manifest}`)
    expect(listed()).toEqual([`me/one:raw ${one.manifestDigest}`, `me/two:raw ${two.manifestDigest}`])
    await publish([newer], target)
    expect(listed()).toEqual([`me/one:raw ${newer.manifestDigest}`, `me/two:raw ${two.manifestDigest}`])
    expect(existsSync(join(out, one.torrentKey))).toBe(true)
    const page = readFileSync(join(out, 'index.html'), 'utf8')
    expect(page).toContain(newer.manifestDigest)
    expect(page).not.toContain(one.manifestDigest)
  })

  test('an unchanged publication keeps the page; a changed page is regenerated', async () => {
    const out = temporaryFolder()
    const publication = await makeModel(temporaryFolder(), { sizeBytes: 1000 }).publication()
    const target = await folder(out)
    await publish([publication], target)
    const page = join(out, 'index.html')
    const before = statSync(page, { bigint: true })
    await publish([publication], target)
    const after = statSync(page, { bigint: true })
    expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs])
    const text = readFileSync(page, 'utf8')
    writeFileSync(page, text.replace('<h1>Models</h1>', ''))
    await publish([publication], target)
    expect(readFileSync(page, 'utf8')).toBe(text)
  })

  test('names are escaped on the page, whatever they look like', async () => {
    const out = temporaryFolder()
    const publication = await makeModel(temporaryFolder(), { sizeBytes: 1000 }).publication()
    const target = await folder(out)
    const evil = `<img src=x onerror=alert(1)>"'&`
    await publish(
      [{ ...publication, ref: evil, files: [{ ...publication.files[0]!, name: evil }], objects: [] }],
      target
    )
    const page = readFileSync(join(out, 'index.html'), 'utf8')
    expect(page).not.toContain('<img')
    expect(page).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;')
  })

  test('never overwrites an index or a page that svc did not write', async () => {
    const publication = await makeModel(temporaryFolder(), { sizeBytes: 1000 }).publication()
    for (const [name, text] of [
      ['index.html', '<h1>mine</h1>'],
      ['index.json', '{"mine":true}'],
      ['index.json', 'not json'],
      ['index.json', '{"svcPublication":1,"models":[{"manifest":"x"}]}']
    ] as const) {
      const out = temporaryFolder()
      writeFileSync(join(out, name), text)
      expect((await failure(publish([publication], await folder(out)))).code).toBe('E_BAD_TARGET')
      expect(readFileSync(join(out, name), 'utf8')).toBe(text)
      expect(existsSync(join(out, publication.name))).toBe(false)
    }
  })

  test('does not follow links that lead out of it', async () => {
    const publication = await makeModel(temporaryFolder(), { sizeBytes: 1000 }).publication()
    const [out, elsewhere] = [temporaryFolder(), temporaryFolder()]
    symlinkSync(elsewhere, join(out, publication.name))
    expect((await failure(publish([publication], await folder(out)))).code).toBe('E_BAD_TARGET')
    expect(readdirSync(elsewhere)).toEqual([])
    const file = temporaryFolder()
    writeFileSync(join(file, 'mine'), 'mine')
    const other = temporaryFolder()
    mkdirSync(join(other, publication.name))
    symlinkSync(join(file, 'mine'), join(other, publication.name, 'modelconfig.json'))
    await publish([publication], await folder(other))
    expect(readFileSync(join(file, 'mine'), 'utf8')).toBe('mine')
    expect(lstatSync(join(other, publication.name, 'modelconfig.json')).isFile()).toBe(true)
  })

  test('has one writer at a time', async () => {
    const out = temporaryFolder()
    const first = await folder(out)
    expect((await failure(openTarget({ kind: 'folder', path: out }))).code).toBe('E_BAD_TARGET')
    await first.close()
    await (await folder(out)).close()
    writeFileSync(join(out, 'file'), '')
    expect((await failure(openTarget({ kind: 'folder', path: join(out, 'file') }))).code).toBe('E_BAD_TARGET')
    if (process.geteuid?.() !== 0) {
      chmodSync(out, 0o500)
      expect((await failure(openTarget({ kind: 'folder', path: out }))).code).toBe('E_IO')
    }
  })

  test('an aborted call throws its reason, and no partial file has its final name', async () => {
    const out = temporaryFolder()
    const publication = await makeModel(temporaryFolder()).publication()
    const stop = new AbortController()
    const target = await folder(out)
    const stopped = publish([publication], target, {
      signal: stop.signal,
      onProgress: ({ file }) => {
        if (file?.name.endsWith('.gguf') && file.bytesDone > 0) stop.abort(new Error('Ctrl-C'))
      }
    })
    expect((await failure(stopped)).message).toBe('Ctrl-C')
    expect(existsSync(join(out, publication.objects.find(({ key }) => key.endsWith('.gguf'))!.key))).toBe(false)
    await publish([publication], target)
  })
})

describe('the address of readers is checked', () => {
  const KINDS = ['honest', 'moved', 'loop', 'whole', 'other', 'long', 'encoded', 'range', 'status', 'cut'] as const
  test.each(KINDS)('%s', async (kind) => {
    const out = temporaryFolder()
    const server = createServer((request, response) => {
      const [path = '', moved] = request.url!.split('?')
      if (kind === 'loop' || (kind === 'moved' && moved === undefined))
        return void response.writeHead(302, { location: `${path}?moved` }).end()
      const bytes = readFileSync(join(out, decodeURIComponent(path)))
      const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!.map(Number) as [number, number, number]
      const body = Buffer.from(bytes.subarray(from, to + 1))
      if (kind === 'other') body[0]! ^= 1
      if (kind === 'status') return void response.writeHead(403).end()
      if (kind === 'whole') return void response.writeHead(200).end(bytes)
      const range = kind === 'range' ? `bytes ${from}-${to}/${bytes.length + 1}` : `bytes ${from}-${to}/${bytes.length}`
      response.writeHead(206, { 'content-range': range, ...(kind === 'encoded' && { 'content-encoding': 'br' }) })
      if (kind === 'long') response.write(Buffer.alloc(10))
      if (kind === 'cut') return void response.write(body.subarray(0, 1), () => response.destroy())
      response.end(body)
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const publication = await makeModel(temporaryFolder(), { sizeBytes: 300_000 }).publication({ url })
    const work = publish([publication], await folder(out), { url, checkUrl: true })
    if (kind === 'honest' || kind === 'moved') expect((await work).checkedRanges).toBeGreaterThan(10)
    else {
      expect((await failure(work)).code).toBe('E_CHECK_FAILED')
      expect(existsSync(join(out, 'index.json'))).toBe(false)
    }
  })
})

test('piece layers are the same, whether computed here or given', async () => {
  const model = makeModel(temporaryFolder())
  const made = await model.publication()
  const layers = made.objects.find(({ key }) => key.startsWith('bt/piece-layers/'))!.content as Uint8Array
  const given = await model.publication({ pieceLayers: layers })
  expect(given.objects.map(({ digest }) => digest)).toEqual(made.objects.map(({ digest }) => digest))
  const wrong = Uint8Array.from(layers)
  wrong[wrong.length - 5]! ^= 1
  await expect(model.publication({ pieceLayers: wrong })).rejects.toMatchObject({ code: 'E_METAINFO' })
  await expect(model.publication({ manifest: Buffer.from('{}') })).rejects.toThrow()
})
