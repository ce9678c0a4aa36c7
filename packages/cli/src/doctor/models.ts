import { formatBytes } from '../format.ts'
import { type Check, type Found, say } from './finding.ts'

/** Whether every model is here whole, and one that runtimes can load. */
export const models: Check = ({ status, models: all }) => {
  const found = all.flatMap(({ ref, complete, away, damaged, malformed, missingBytes = 0 }): Found[] => {
    if (malformed !== undefined)
      return [
        say.warn(
          `${ref} is no model: no runtime can load ${malformed.join(', ')}`,
          `svc rm ${ref}, and import it again`
        )
      ]
    if (complete || (away === true && damaged !== true)) return []
    const lost = `${ref}: ${formatBytes(missingBytes)} ${damaged === true ? 'damaged' : 'missing'}`
    const advice = `svc pull ${ref} fetches it again; svc rm ${ref} lets go of it`
    return [damaged === true ? { ...say.bad(lost, advice), isDamage: true } : say.warn(lost, advice)]
  })
  if (found.length > 0 || status === undefined) return found
  return [say.ok(all.length === 0 ? 'none yet' : `all ${all.length} are whole`)]
}

/** Whether the links of views lead to bytes, and the views are where they were made. */
export const views: Check = ({ models: all, views: made }) => {
  const lacking = new Map(all.filter(({ complete }) => !complete).map(({ manifest, ref }) => [manifest, ref]))
  return made.flatMap(({ path, mode, present, managed, manifestDigest, others = [] }): Found[] => {
    if (!present) return [say.warn(`${path} is not there`, `mount its disk, or svc view --rm ${path} forgets it`)]
    if (mode === 'copy') return []
    const refs = [manifestDigest, ...others].flatMap((digest) => lacking.get(digest) ?? [])
    if (refs.length === 0 || managed) return []
    return [say.warn(`links in ${path} lead nowhere: ${refs.join(', ')} is not all here`, `svc pull ${refs[0]}`)]
  })
}
