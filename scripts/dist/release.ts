import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { debianPackage, debName } from './deb.ts'
import { gzip, tar } from './pack.ts'
import { ARCHIVE, DEBIAN, product, projectOf, versionOf } from './product.ts'
import type { Platform, Runtime } from './runtimes.ts'

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

/**
 * Writes an archive for each platform, a Debian package for each Linux, the install script, and the digests of all. The same sources
 * give the same bytes, whenever and wherever.
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
    write(`${name}.tar.gz`, gzip(tar(product(root, runtime, ARCHIVE), `${name}/`)))
    const architecture = DEBIAN_NAMES[platform]
    if (architecture === undefined) continue
    const usr = product(root, runtime, DEBIAN)
    write(debName({ version, architecture }), debianPackage({ version, architecture, project: projectOf(root), usr }))
  }
  copyFileSync(join(import.meta.dirname, 'install.sh'), join(out, 'install.sh'))
  const files = readdirSync(out).filter((name) => /^svc[-_].*\.(?:tar\.gz|deb)$|^install\.sh$/.test(name))
  const sums = files.sort().map((name) => {
    const digest = createHash('sha256')
      .update(readFileSync(join(out, name)))
      .digest('hex')
    return `${digest}  ${name}\n`
  })
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
}
