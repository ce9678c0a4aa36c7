import { ggufQuant } from '@svc/classify'
import { isTrackerUrl } from '@svc/library/parts'
import { parseMagnetTopics } from '@svc/metainfo'

/** One torrent of a catalog: it has one weights file, and a repository can have several torrents. */
export interface ListedTorrent {
  /** `owner/name` as listed. */
  readonly repo: string
  readonly sizeLabel: string
  readonly seeds: number
  /** BitTorrent v1, 40 lower-case hex characters. */
  readonly infohash: string
  /** `dn` of the magnet: the name of the weights file. */
  readonly displayName: string
  /** The quant in that name by the recognition rules (spec rec.14); `raw` if there is none. */
  readonly quant: string
  readonly trackers: readonly string[]
  /** `ws` of the magnet, and the 40-hex revision at the end of its path. */
  readonly webseed: { readonly url: string; readonly revision: string } | undefined
}

const LINE = /^(\S+) {2}(.{1,64}?) {2}(\d{1,9}) seeds? {2}(magnet:\S+)$/
const REPO = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}\/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/
const MAX_LINES = 10_000
const MAX_LINE_CHARACTERS = 16_384
const MAX_TRACKERS = 50

/** Parses text lines of four fields separated by two spaces (spec cat.2). Invalid lines are skipped. */
export const parseCatalogListing = (text: string): ListedTorrent[] =>
  text.split('\n', MAX_LINES).flatMap((line) => tryParseCatalogLine(line) ?? [])

export function tryParseCatalogLine(line: string): ListedTorrent | undefined {
  const match = line.length <= MAX_LINE_CHARACTERS ? LINE.exec(line.replace(/\r$/, '')) : null
  if (!match) return undefined
  const [, repo, sizeLabel, seeds, magnet] = match as unknown as [string, string, string, string, string]
  if (!REPO.test(repo)) return undefined
  try {
    const topics = parseMagnetTopics(magnet)
    if (topics.infohashV1 === undefined) return undefined
    const displayName = topics.name ?? ''
    return {
      repo,
      sizeLabel,
      seeds: Number(seeds),
      infohash: Buffer.from(topics.infohashV1).toString('hex'),
      displayName,
      quant: ggufQuant(displayName.slice(displayName.lastIndexOf('/') + 1)),
      trackers: topics.trackers.filter(isTrackerUrl).slice(0, MAX_TRACKERS),
      webseed: topics.webseeds.map(pinnedWebseed).find((webseed) => webseed !== undefined)
    }
  } catch {
    return undefined
  }
}

/** A webseed counts only if its path ends in the revision that it is pinned to. */
function pinnedWebseed(url: string): ListedTorrent['webseed'] {
  if (!URL.canParse(url)) return undefined
  const { protocol, pathname, search } = new URL(url)
  const revision = /\/([0-9a-f]{40})\/?$/.exec(pathname)?.[1]
  if (!/^https?:$/.test(protocol) || search !== '' || revision === undefined) return undefined
  return { url: url.replace(/\/+$/, ''), revision }
}
