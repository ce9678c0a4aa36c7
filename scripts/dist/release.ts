import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { debianPackage, debName } from './deb.ts'
import { gzip, tar } from './pack.ts'
import { ARCHIVE, DEBIAN, product, projectOf, versionOf } from './product.ts'
import type { Platform, Runtime } from './runtimes.ts'
import { sbomOf } from './sbom.ts'
import { commitOf, statementOf } from './statement.ts'

export interface Release {
  /** The workspace, built. */
  readonly root: string
  /** Where the files go. */
  readonly out: string
  readonly platforms: readonly Platform[]
  readonly runtimeOf: (platform: Platform) => Runtime
  readonly say?: (line: string) => void
}

const DEBIAN_NAMES: Partial<Record<Platform, 'amd64' | 'arm64'>> = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' }

/** What a release may consist of, packages from `npm pack` among it. */
const RELEASED = /^svc[-_].*\.(?:tar\.gz|deb|tgz)$|^svc-.*\.cdx\.json$|^(?:install\.sh|Dockerfile)$/

/**
 * Writes an archive for each platform, a Debian package for each Linux, the install script, the recipe of the image, the
 * bill of materials, and the digests of all that is in the folder then, also as a statement of what it was made from. The
 * same sources give the same bytes, whenever and wherever.
 */
export function release({ root, out, platforms, runtimeOf, say = () => {} }: Release): void {
  const version = versionOf(root)
  mkdirSync(out, { recursive: true })
  const write = (name: string, bytes: Buffer): void => {
    writeFileSync(join(out, name), bytes)
    say(`${name}  ${(bytes.length / 1e6).toFixed(1)} MB`)
  }
  for (const platform of platforms) {
    const runtime = runtimeOf(platform)
    const name = `svc-${version}-${platform}`
    const tree = product(root, runtime, ARCHIVE)
    write(`${name}.tar.gz`, gzip(tar(tree, `${name}/`)))
    // the same for every platform: nothing that is shipped is native but Node
    if (platform === platforms[0]) write(`svc-${version}.cdx.json`, sbomOf(tree, { version, node: runtime.version }))
    const architecture = DEBIAN_NAMES[platform]
    if (architecture === undefined) continue
    const usr = product(root, runtime, DEBIAN)
    write(debName({ version, architecture }), debianPackage({ version, architecture, project: projectOf(root), usr }))
  }
  for (const file of ['install.sh', 'Dockerfile']) copyFileSync(join(import.meta.dirname, file), join(out, file))
  const digests = digestsIn(out)
  write('provenance.intoto.json', statementOf(digests, commitOf(root), projectOf(root).homepage))
  const sums = [...digestsIn(out)].map(([name, digest]) => `${digest}  ${name}\n`)
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
}

function digestsIn(folder: string): ReadonlyMap<string, string> {
  const names = readdirSync(folder).filter((name) => RELEASED.test(name) || name === 'provenance.intoto.json')
  const digest = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex')
  return new Map(names.sort().map((name) => [name, digest(name)]))
}
