// A step of a build: `image.ts FOLDER ns/name LAYOUT` checks and stores the models in a folder, and writes them as an OCI image layout, which
// any tool pushes to a registry.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { localFiles, openLibrary } from '@svc/library'
import { packArtifact, writeLayout } from '@svc/oci'
import { parseDigest } from '@svc/ref'

const [folder = '.', name = '', layout = 'layout'] = process.argv.slice(2)
const root = await mkdtemp(join(tmpdir(), 'store-'))
const library = await openLibrary({ root })
const images = []
const { quants = [] } = await library.import(localFiles([resolve(folder)]), name)
for (const quant of quants) {
  const ref = `${name}:${quant}`
  const opened = await library.open(`svc:///${ref}`)
  const files = opened.files.flatMap(({ name, kind, digest, size, path }) =>
    name === undefined || kind === undefined ? [] : [{ name, kind, digest: parseDigest(digest), sizeBytes: size, path }]
  )
  images.push(packArtifact({ files, manifestDigest: parseDigest(opened.manifestDigest), annotations: {}, ref }))
}
await writeLayout(resolve(layout), images)
await library.close()
await rm(root, { recursive: true })
