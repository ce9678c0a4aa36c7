/** Drawn on a square of 20, by lines as thick as the text's. */
const PATHS = {
  models: 'M10 2.5 17 6v8l-7 3.5L3 14V6zM3 6l7 3.5L17 6M10 9.5v8',
  get: 'M10 3v9m-3.5-3.5L10 12l3.5-3.5M3.5 13v3.5h13V13',
  jobs: 'M2.5 10.5h3l2.5-6 4 11 2.5-5h3',
  machine: 'M3 4h14v5H3zm0 7h14v5H3zm3-4.5h.1m-.1 7h.1'
}

export type IconName = keyof typeof PATHS

/** Says nothing: a text beside it does. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
)
