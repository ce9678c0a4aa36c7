import type { Clock } from '@svc/internal-clock'
import type { Sha256Digest } from '@svc/ref'

const DAY_MS = 24 * 3600_000
const BEFORE = /^before-(\d{4}-\d{2}-\d{2})(?:-\d+)?$/

/** Tags an index as what a name stood for before today's upgrade (spec add.52); one that has such a tag keeps that. @returns the tag */
export function tagBefore(tags: Map<string, Sha256Digest>, index: Sha256Digest, clock: Pick<Clock, 'now'>): string {
  const known = [...tags].find(([tag, digest]) => digest === index && BEFORE.test(tag))
  if (known !== undefined) return known[0]
  const today = `before-${new Date(clock.now()).toISOString().slice(0, 10)}`
  let tag = today
  for (let i = 2; tags.has(tag); i++) tag = `${today}-${i}`
  tags.set(tag, index)
  return tag
}

/** Whether a tag was left by an upgrade at least this long ago. It tells only the day: the end of that counts, unless all are meant (0). */
export function isBeforeTag(tag: string, olderThanMs: number, clock: Pick<Clock, 'now'>): boolean {
  const day = BEFORE.exec(tag)?.[1]
  return day !== undefined && Date.parse(day) + (olderThanMs === 0 ? 0 : DAY_MS + olderThanMs) <= clock.now()
}
