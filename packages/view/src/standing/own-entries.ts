import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { STANDING_LAYOUTS, type StandingLayout } from './model.ts'

/** Below a standing view: what is ours in it, and what is not finished. */
export const WORK_FOLDER = '.svc'
const FILE = 'standing.json'
const MAX_BYTES = 64 << 20

/** What svc made in a tool's folder. */
export interface OwnEntries {
  readonly layout: StandingLayout
  /** What it was made from, once it is as it should be. */
  readonly key?: string | undefined
  /** By path: what may lie there; two marks while one replaces the other. */
  readonly entries: Readonly<Record<string, readonly string[]>>
  /** Folders that appear and go at once. */
  readonly groups?: readonly string[] | undefined
  /** Folders that were absent, the outer ones first. */
  readonly folders: readonly string[]
  /** By path: files of the store that cannot be copied, as they were then, and why. */
  readonly bad?: Readonly<Record<string, BadSource>> | undefined
}

/** A file of the store that cannot be copied until it changes. */
export interface BadSource {
  readonly stamp: string
  readonly reason: string
}

/** Undefined if there is no such view, or nothing that can be read: then only links into the store are ours. */
export function readOwnEntries(path: string): OwnEntries | undefined {
  let text: string
  try {
    text = readFileSync(join(path, WORK_FOLDER, FILE), 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) return undefined
    throw error
  }
  try {
    return text.length > MAX_BYTES ? undefined : parsed(JSON.parse(text))
  } catch {
    return undefined
  }
}

function parsed(value: unknown): OwnEntries | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { layout, key, entries, groups, folders, bad } = value as { readonly [K in keyof OwnEntries]?: unknown }
  const known = STANDING_LAYOUTS.find((each) => each === layout)
  if (known === undefined || typeof entries !== 'object' || entries === null || !Array.isArray(folders))
    return undefined
  const own = Object.entries(entries).filter(
    ([at, marks]) => isBelow(at) && Array.isArray(marks) && marks.every((mark) => typeof mark === 'string')
  )
  return {
    layout: known,
    ...(typeof key === 'string' && { key }),
    entries: Object.fromEntries(own) as OwnEntries['entries'],
    groups: Array.isArray(groups) ? groups.filter((each) => isBelow(each)) : [],
    folders: folders.filter((each) => isBelow(each)),
    ...(typeof bad === 'object' && bad !== null && { bad: bad as NonNullable<OwnEntries['bad']> })
  }
}

/** A path that leads out of the folder is nobody's entry. */
const isBelow = (at: unknown): at is string =>
  typeof at === 'string' && at !== '' && !isAbsolute(at) && !at.split('/').some((part) => part === '..' || part === '')

export function writeOwnEntries(path: string, own: OwnEntries): void {
  const file = join(path, WORK_FOLDER, FILE)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.tmp`, JSON.stringify(own))
  renameSync(`${file}.tmp`, file)
}
