import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Disk } from '../bridge.ts'
import { formatBytes } from '../format.ts'
import { TEXTS } from '../texts.ts'
import { type Area, squarify } from './treemap.ts'

interface MapPart {
  /** A model's reference; for anything else, what it is. */
  readonly name: string
  /** The tile's text, below the group's name. */
  readonly label: string
  readonly kind: 'model' | 'shared' | 'kept' | 'garbage' | 'others'
  readonly bytes: number
}

/** A repository with its quants, or something else alone. */
interface Group {
  readonly name: string
  readonly parts: readonly MapPart[]
  readonly bytes: number
}

/** People can tell so many tiles apart; the smaller models are one tile. */
const MAX_TILES = 60
/** What is smaller than this part of the store has no room for a label, and is one of them as well. */
const SMALLEST_SHARE = 1 / 300
/** So many have one of their own all the same. */
const FEWEST_TILES = 12

const sumOf = (sizes: readonly { readonly bytes: number }[]): number => sizes.reduce((sum, { bytes }) => sum + bytes, 0)
const repoOf = (ref: string): string => ref.slice(0, ref.lastIndexOf(':'))

/** All bytes of the store, each once. */
export function groupsOf({ models, repositories, sharedBytes, keptBytes, freeableBytes }: Disk): Group[] {
  const quants = models
    .map(
      ({ ref, aloneBytes: bytes }): MapPart => ({
        name: ref,
        label: ref.slice(repoOf(ref).length + 1),
        kind: 'model',
        bytes
      })
    )
    .sort((a, b) => b.bytes - a.bytes)
  const least = SMALLEST_SHARE * sumOf(quants)
  const large = quants.slice(0, MAX_TILES).filter(({ bytes }) => bytes >= least).length
  const count = Math.max(large, Math.min(FEWEST_TILES, quants.length))
  const alone = new Map(repositories.map(({ ref, aloneBytes }) => [ref, aloneBytes]))
  const sums = Map.groupBy(quants, ({ name }) => repoOf(name))
  let within = 0
  const groups = [...Map.groupBy(quants.slice(0, count), ({ name }) => repoOf(name))].map(([name, parts]): Group => {
    // what its quants share with each other alone
    const bytes = Math.max(0, (alone.get(name) ?? 0) - sumOf(sums.get(name)!))
    within += bytes
    const all: MapPart[] = [...parts, { name: TEXTS.map.within(name), label: TEXTS.map.both, kind: 'shared', bytes }]
    return { name, parts: all.filter((part) => part.bytes > 0), bytes: sumOf(all) }
  })
  const small = quants.slice(count)
  const others = [
    ['others', TEXTS.map.others(small.length), sumOf(small)],
    ['shared', TEXTS.map.shared, sharedBytes - within],
    ['kept', TEXTS.map.kept, keptBytes],
    ['garbage', TEXTS.map.garbage, freeableBytes]
  ] as const
  const rest = others.map(
    ([kind, name, bytes]): Group => ({ name, bytes, parts: [{ kind, name, label: name, bytes }] })
  )
  return [...groups, ...rest].filter(({ bytes }) => bytes > 0)
}

interface DrawnTile extends Area {
  readonly part: MapPart
  readonly isAlone: boolean
}

const HEAD_HEIGHT = 22
const GAP = 2

/** In pixels: a frame for each repository, with its name where there is room, and tiles in it. */
export function layOut(groups: readonly Group[], width: number, height: number) {
  const frames: (Area & { readonly name: string; readonly hasHead: boolean })[] = []
  const tiles: DrawnTile[] = []
  const whole: Area = { x: 0, y: 0, width, height }
  for (const [{ name, parts }, outer] of split(groups, whole)) {
    const isAlone = parts.length === 1
    const hasHead = !isAlone && outer.width > 70 && outer.height > 3 * HEAD_HEIGHT
    const head = hasHead ? HEAD_HEIGHT : 0
    if (!isAlone) frames.push({ ...outer, name, hasHead })
    const inner = isAlone
      ? outer
      : {
          x: outer.x + GAP,
          y: outer.y + GAP + head,
          width: Math.max(0, outer.width - GAP),
          height: Math.max(0, outer.height - GAP - head)
        }
    for (const [part, box] of split(parts, inner)) tiles.push({ part, isAlone: !hasHead, ...box })
  }
  return { frames, tiles }
}

const split = <T extends { readonly bytes: number }>(
  all: readonly T[],
  { x, y, width, height }: Area
): (readonly [T, Area])[] =>
  squarify(all, ({ bytes }) => bytes, Math.max(1, width) / Math.max(1, height)).map((tile) => [
    tile.item,
    {
      x: x + tile.x * width,
      y: y + tile.y * height,
      // never wider than its share, or it would lie on the next one
      width: Math.max(0, tile.width * width - GAP),
      height: Math.max(0, tile.height * height - GAP)
    }
  ])

/** The same colour for the same name. */
const hueOf = (name: string): number => [...name].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 360, 7)

const place = ({ x, y, width, height }: Area) => ({
  left: `${x.toFixed(1)}px`,
  top: `${y.toFixed(1)}px`,
  width: `${width.toFixed(1)}px`,
  height: `${height.toFixed(1)}px`
})

interface DiskMapProps {
  readonly disk: Disk
  readonly onOpen: (ref: string) => void
  readonly onCollect: () => void
}

export function DiskMap({ disk, onOpen, onCollect }: DiskMapProps) {
  const box = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState(0)
  const size = useSizeOf(box)
  const groups = groupsOf(disk)
  const total = sumOf(groups)
  const { frames, tiles } = layOut(groups, size.width, size.height)
  const move = ({ key }: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key]
    if (step === undefined) return
    const to = (active + step + tiles.length) % tiles.length
    setActive(to)
    box.current?.querySelectorAll('button')[to]?.focus()
  }
  const open = ({ kind, name }: MapPart): void => {
    if (kind === 'model') onOpen(name)
    if (kind === 'garbage') onCollect()
  }
  return (
    <figure class="map">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      <div ref={box} role="group" aria-label={TEXTS.map.label} onKeyDown={move}>
        {frames.map((frame) => (
          <div
            key={frame.name}
            class="frame"
            aria-hidden="true"
            style={{ ...place(frame), '--hue': `${hueOf(frame.name)}` }}
          >
            {frame.hasHead && shortOf(frame.name)}
          </div>
        ))}
        {tiles.map((tile, i) => (
          <MapTile
            key={tile.part.name}
            tile={tile}
            total={total}
            isCurrent={i === Math.min(active, tiles.length - 1)}
            onFocus={() => setActive(i)}
            onOpen={() => open(tile.part)}
          />
        ))}
      </div>
      <figcaption class="hint">{TEXTS.map.hint}</figcaption>
    </figure>
  )
}

/** In pixels, as of now. */
function useSizeOf(box: { readonly current: HTMLElement | null }) {
  const [size, setSize] = useState({ width: 900, height: 280 })
  useLayoutEffect(() => {
    const look = (): void => {
      const { clientWidth: width, clientHeight: height } = box.current!
      if (width > 0) setSize({ width, height })
    }
    look()
    addEventListener('resize', look)
    return () => removeEventListener('resize', look)
  }, [])
  return size
}

interface MapTileProps {
  readonly tile: DrawnTile
  /** Bytes of the whole map. */
  readonly total: number
  readonly isCurrent: boolean
  readonly onFocus: () => void
  readonly onOpen: () => void
}

function MapTile({ tile: { part, isAlone, ...at }, total, isCurrent, onFocus, onOpen }: MapTileProps) {
  const isRoomy = at.width > 72 && at.height > 38
  const hasLabel = isRoomy || (at.width > 36 && at.height > 16)
  const size = formatBytes(part.bytes)
  return (
    <button
      type="button"
      class={isRoomy ? part.kind : `${part.kind} small`}
      tabIndex={isCurrent ? 0 : -1}
      title={`${part.name}\n${size}`}
      aria-label={TEXTS.map.tile(part.name, size, percent(part.bytes / total))}
      style={{ ...place(at), '--hue': `${hueOf(repoOf(part.name))}` }}
      onFocus={onFocus}
      onClick={onOpen}
    >
      {hasLabel && <b>{isAlone ? shortOf(part.name) : part.label}</b>} {isRoomy && <small>{size}</small>}
    </button>
  )
}

const shortOf = (name: string): string => name.slice(name.indexOf('/') + 1)
const percent = (part: number): string => `${(part * 100).toFixed(1).replace(/\.0$/, '')}%`
