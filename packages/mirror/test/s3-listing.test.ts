// Pages of a bucket, compared with a listing that sorts all keys and cuts.
import { expect, test } from 'vitest'
import { formatPage, type ListedObject, listPage, parseListQuery } from '../src/s3-listing.ts'

interface Folder {
  readonly prefix: string
  readonly files: readonly string[]
}

function foldersOf(files: Readonly<Record<string, readonly string[]>>): Folder[] {
  const folders = Object.entries(files).map(([prefix, names]) => ({ prefix, files: names }))
  return folders.sort((a, b) => (a.prefix < b.prefix ? -1 : 1))
}

const SMALL = foldersOf({
  'a-b/x/q4_0/': ['model.gguf'],
  'a/x/bf16/': ['z', 'config.json', 'sub/deep/one', 'sub/two', 'ünder', 'ﬀ', '𝒳', 'A'],
  'a/x/q8_0/': ['model.gguf', 'model.gguf-2'],
  'a/y/q8_0/': ['model.gguf'],
  'b/x/q8_0/': ['model.gguf']
})

let read = 0
async function objectsOf({ prefix, files }: Folder): Promise<ListedObject[]> {
  read++
  return files.map((name) => ({ key: prefix + name, sizeBytes: 1, etag: '"e"', modifiedAt: new Date(0) }))
}

const of = (query: Record<string, string>) => parseListQuery(new URLSearchParams(query))
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** The behaviour that S3 documents, in the simplest way. */
function expected(folders: readonly Folder[], { prefix = '', delimiter = '', after = '' }): string[] {
  const entries = new Set<string>()
  for (const { prefix: at, files } of folders)
    for (const name of files) {
      const key = at + name
      if (!key.startsWith(prefix) || byBytes(key, after) <= 0) continue
      const end = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
      entries.add(end < 0 ? key : key.slice(0, end + delimiter.length))
    }
  return [...entries].sort(byBytes)
}

async function walked(folders: readonly Folder[], query: Record<string, string>, version = '2'): Promise<string[]> {
  const found: string[] = []
  for (let next: Record<string, string> = query; ; ) {
    const asked = of(version === '2' ? { 'list-type': '2', ...next } : next)
    const page = await listPage(asked, folders, objectsOf)
    const here = [...page.objects.map(({ key }) => key), ...page.folders]
    expect(here.length).toBeLessThanOrEqual(asked.maxKeys)
    found.push(...here)
    const text = formatPage(asked, page)
    const token = /<(?:NextContinuationToken|NextMarker)>([^<]*)/.exec(text)?.[1]
    expect(text).toContain(`<IsTruncated>${token !== undefined}</IsTruncated>`)
    if (token === undefined) return found
    next = { ...query, [version === '2' ? 'continuation-token' : 'marker']: token }
  }
}

const QUERIES: readonly Record<string, string>[] = [
  {},
  { delimiter: '/' },
  { delimiter: '/', prefix: 'a/' },
  { delimiter: '/', prefix: 'a/x/' },
  { delimiter: '/', prefix: 'a/x/bf16/' },
  { delimiter: '/', prefix: 'a/x/bf16/sub/' },
  { delimiter: '/', prefix: 'a/x/bf16/s' },
  { prefix: 'a' },
  { prefix: 'a/x/q8_0/model.gguf' },
  { prefix: 'a/x/q8_0/model.gguf-' },
  { prefix: 'nothing' },
  { delimiter: 'x/' },
  { delimiter: '6/su' },
  { delimiter: 'model' },
  { delimiter: '/', prefix: 'a/x/bf16' }
]

test.each(QUERIES)('%o: every size of page, in both versions', async (query) => {
  const wanted = expected(SMALL, query)
  for (const maxKeys of ['1', '2', '3', '1000']) {
    for (const version of ['1', '2']) {
      const found = await walked(SMALL, { ...query, 'max-keys': maxKeys }, version)
      expect([maxKeys, version, found.sort(byBytes)]).toEqual([maxKeys, version, wanted])
    }
  }
})

test.each(['a', 'a/', 'a/x/bf16/sub/', 'a/x/bf16/sub/two', 'a/x/q8_0/model.gguf', 'a/x/q8_0/', 'b', 'z', '𝒳'])(
  'after %s',
  async (after) => {
    expect((await walked(SMALL, { 'start-after': after, 'max-keys': '2' })).sort(byBytes)).toEqual(
      expected(SMALL, { after })
    )
  }
)

test('an empty page ends the listing', async () => {
  const page = await listPage(of({ 'list-type': '2', 'max-keys': '0' }), SMALL, objectsOf)
  expect([page.objects, page.next]).toEqual([[], undefined])
})

test('a page of ten thousand names looks up only a few files', async () => {
  const files = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, i) => [`acme/model-${i}/q4_0/`, i % 2 === 0 ? [] : ['model.gguf']])
  )
  const many = foldersOf(files)
  const pages = async (query: Record<string, string>): Promise<number> => {
    read = 0
    expect((await listPage(of({ 'list-type': '2', ...query }), many, objectsOf)).objects.length).toBeLessThan(65)
    return read
  }
  expect(await pages({})).toBeLessThan(65)
  expect(await pages({ delimiter: '/', prefix: 'acme/' })).toBe(0)
  expect(await pages({ prefix: 'acme/model-77/' })).toBe(1)
  const some = many.slice(0, 1_000)
  expect((await walked(some, {})).sort(byBytes)).toEqual(expected(some, {}))
  expect((await walked(many, { delimiter: '/', prefix: 'acme/' })).length).toBe(10_000)
})
