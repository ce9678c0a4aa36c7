import { lstatSync } from 'node:fs'
import { join, sep } from 'node:path'
import { lies } from './mark.ts'
import { readOwnEntries } from './own-entries.ts'

/**
 * Whether a folder still is as `syncStanding` left it for this key: every entry is there, and unpacked files behind links
 * are. False for a folder that cannot be read.
 */
export function isStandingInOrder(path: string, key: string): boolean {
  try {
    const own = readOwnEntries(path)
    if (own?.key !== key) return false
    return Object.entries(own.entries).every(([at, [mark = '', other]]) => {
      if (other !== undefined || lies(join(path, at), mark) !== true) return false
      const isUnpacked = mark.startsWith('L') && mark.includes(UNPACKED)
      return !isUnpacked || lstatSync(mark.slice(1), { throwIfNoEntry: false }) !== undefined
    })
  } catch {
    return false
  }
}

/** Part of the paths of files that the store unpacked, and may have thrown away. */
const UNPACKED = `${sep}cache${sep}`
