import { useRef, useState } from 'preact/hooks'
import type { Disk } from '../bridge.ts'
import { formatBytes } from '../format.ts'
import { TEXTS } from '../texts.ts'
import { squarify } from './treemap.ts'

interface Part {
  readonly name: string
  readonly kind: 'model' | 'shared' | 'kept' | 'garbage' | 'others'
  readonly bytes: number
}

/** Tiles that can be told apart; the smaller models are one tile. */
const MAX_TILES = 60
const ASPECT = 3
/** The part of the whole from which on a tile has room for its name. */
const MIN_LABELLED = 0.012

/** All bytes of the store, each once. */
export function partsOf(disk: Disk): Part[] {
  const models = [...disk.models].sort((a, b) => b.aloneBytes - a.aloneBytes)
  const small = models.slice(MAX_TILES)
  const sum = small.reduce((bytes, { aloneBytes }) => bytes + aloneBytes, 0)
  const parts: Part[] = [
    ...models
      .slice(0, MAX_TILES)
      .map(({ ref, aloneBytes }) => ({ name: ref, kind: 'model' as const, bytes: aloneBytes })),
    { name: TEXTS.map.others(small.length), kind: 'others', bytes: sum },
    { name: TEXTS.map.shared, kind: 'shared', bytes: disk.sharedBytes },
    { name: TEXTS.map.kept, kind: 'kept', bytes: disk.keptBytes },
    { name: TEXTS.map.garbage, kind: 'garbage', bytes: disk.freeableBytes }
  ]
  return parts.filter(({ bytes }) => bytes > 0)
}

/** A picture of what takes the disk. */
export function DiskMap({ disk, onOpen }: { readonly disk: Disk; readonly onOpen: (ref: string) => void }) {
  const box = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState(0)
  const parts = partsOf(disk)
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  const tiles = squarify(parts, ({ bytes }) => bytes, ASPECT)
  const move = ({ key }: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key]
    if (step === undefined) return
    const to = (active + step + tiles.length) % tiles.length
    setActive(to)
    box.current?.querySelectorAll('button')[to]?.focus()
  }
  return (
    <figure class="map">
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      <div ref={box} role="group" aria-label={TEXTS.map.label} onKeyDown={move}>
        {tiles.map(({ item, x, y, width, height }, i) => (
          <button
            type="button"
            key={item.name}
            class={width * height > MIN_LABELLED ? item.kind : `${item.kind} small`}
            tabIndex={i === Math.min(active, tiles.length - 1) ? 0 : -1}
            title={`${item.name}\n${formatBytes(item.bytes)}`}
            style={{ left: percent(x), top: percent(y), width: percent(width), height: percent(height) }}
            onFocus={() => setActive(i)}
            onClick={() => item.kind === 'model' && onOpen(item.name)}
          >
            <span class={width * height > MIN_LABELLED ? '' : 'unseen'}>{item.name} </span>
            <small class={width * height > MIN_LABELLED ? '' : 'unseen'}>{formatBytes(item.bytes)} </small>
            <span class="unseen">{TEXTS.map.share(percent(item.bytes / total))}</span>
          </button>
        ))}
      </div>
      <figcaption class="hint">{TEXTS.map.hint}</figcaption>
    </figure>
  )
}

const percent = (part: number): string => `${(part * 100).toFixed(2).replace(/\.?0+$/, '')}%`
