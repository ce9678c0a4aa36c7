import { useEffect } from 'preact/hooks'
import { StoreProvider, useStore } from './context.ts'
import { formatBytes, formatRate } from './format.ts'
import { Line } from './parts/line.tsx'
import { NoticeBar } from './parts/notice.tsx'
import { followAddress, place, VIEW_NAMES, type ViewName } from './place.ts'
import { isRunning, type Store } from './store.ts'
import { TEXTS } from './texts.ts'
import { GetView } from './views/get.tsx'
import { JobsView } from './views/jobs.tsx'
import { MachineView } from './views/machine.tsx'
import { ModelsView } from './views/models.tsx'

const VIEWS = { models: ModelsView, get: GetView, jobs: JobsView, machine: MachineView }

/** Paths on a square of 20, with lines as thick as the text's. */
const ICONS: Readonly<Record<ViewName, string>> = {
  models: 'M10 2.5 17 6v8l-7 3.5L3 14V6zM3 6l7 3.5L17 6M10 9.5v8',
  get: 'M10 3v9m-3.5-3.5L10 12l3.5-3.5M3.5 13v3.5h13V13',
  jobs: 'M2.5 10.5h3l2.5-6 4 11 2.5-5h3',
  machine: 'M3 4h14v5H3zm0 7h14v5H3zm3-4.5h.1m-.1 7h.1'
}

export function Page({ store }: { readonly store: Store }) {
  useEffect(followAddress, [])
  const { view, model, repo, text } = place.value
  const View = VIEWS[view]
  useEffect(() => {
    const words = [model ?? repo ?? text, TEXTS.views[view], TEXTS.title]
    document.title = words.filter((word) => word !== undefined).join(' · ')
  }, [view, model, repo, text])
  return (
    <StoreProvider value={store}>
      <header class="top">
        <strong class="brand">{TEXTS.title}</strong>
        <nav aria-label={TEXTS.title}>
          {VIEW_NAMES.map((each) => (
            <a key={each} href={`#${each}`} aria-current={each === view ? 'page' : undefined}>
              {/* without a name: the text beside it has one */}
              <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
                <path d={ICONS[each]} />
              </svg>
              {TEXTS.views[each]}
              {each === 'jobs' && <JobCount />}
            </a>
          ))}
        </nav>
        <Glance />
      </header>
      <LinkState />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it */}
      <main key={view} class={view} tabIndex={0}>
        <h1>{TEXTS.views[view]}</h1>
        <View />
      </main>
      <NoticeBar />
    </StoreProvider>
  )
}

function JobCount() {
  const running = useStore().jobs.value.filter(isRunning).length
  return running === 0 ? null : <span class="badge">{running}</span>
}

/** The store and the network, beside every view. */
function Glance() {
  const { status, link, traffic } = useStore()
  if (status.value === undefined) return null
  const { store, version } = status.value
  const { down, up } = traffic.value
  return (
    <section class="glance" aria-label={TEXTS.glance}>
      <Line label={TEXTS.machine.overTime} series={[down, up]} />
      <p class="rates">
        <span>↓ {formatRate(down.at(-1) ?? 0)}</span> <span>↑ {formatRate(up.at(-1) ?? 0)}</span>
      </p>
      <p>{TEXTS.machine.diskBar(formatBytes(store.bytes), formatBytes(store.freeBytes ?? 0))}</p>
      <p class={`mark ${link.value === 'up' ? 'good' : 'warn'}`}>svcd {version}</p>
    </section>
  )
}

/** Says when the daemon or the bridge is away, and when it is back. */
function LinkState() {
  const { link } = useStore()
  const isUp = link.value === 'up'
  return (
    <div role="status" class={isUp ? 'unseen' : `banner ${link.value}`} data-link={link.value}>
      {TEXTS.link[link.value]}
    </div>
  )
}
