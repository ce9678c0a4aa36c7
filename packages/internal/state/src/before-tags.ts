import type { Clock } from '@svc/internal-clock'
import type { Sha256Digest } from '@svc/ref'

const DAY_MS = 24 * 3600_000
const BEFORE = /^before-(\d{4}-\d{2}-\d{2})(?:-\d+)?$/

/** Tags the index that a name had before today's upgrade (spec add.52), unless it has such a tag. @returns the tag */
export function tagBefore(tags: Map<string, Sha256Digest>, index: Sha256Digest, clock: Pick<Clock, 'now'>): string {
  const known = [...tags].find(([tag, digest]) => digest === index && BEFORE.test(tag))
  if (known !== undefined) return known[0]
  const today = `before-${new Date(clock.now()).toISOString().slice(0, 10)}`
  let tag = today
  for (let i = 2; tags.has(tag); i++) tag = `${today}-${i}`
  tags.set(tag, index)
  return tag
}

/** Whether an upgrade left the tag at least this long ago. A tag names only a day, whose end counts; 0 means all tags. */
export function isBeforeTag(tag: string, olderThanMs: number, clock: Pick<Clock, 'now'>): boolean {
  const day = BEFORE.exec(tag)?.[1]
  return day !== undefined && Date.parse(day) + (olderThanMs === 0 ? 0 : DAY_MS + olderThanMs) <= clock.now()
}
