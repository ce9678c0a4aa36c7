import { readdirSync, readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'

// The pages are the repository's own Markdown files, where they lie: what people read in a checkout and on the site is one text.
const root = new URL('../../', import.meta.url)

/** The first heading of a page, which is its name in the sidebar. */
const titleOf = (page: string): string =>
  /^# (.+)$/m.exec(readFileSync(new URL(page, root), 'utf8'))?.[1]?.replaceAll('`', '') ?? page

const item = (page: string) => ({ text: titleOf(page), link: `/${page.replace(/\.md$/, '')}` })

/** All pages of a folder but its README, in the order of their names. */
const pagesOf = (folder: string) =>
  readdirSync(new URL(folder, root))
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .sort()
    .map((name) => item(`${folder}${name}`))

const packages = readdirSync(new URL('packages/', root), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !['internal', 'testkit', 'interop'].includes(entry.name))
  .map(({ name }) => `packages/${name}/README.md`)
  .filter((page) => {
    try {
      return readFileSync(new URL(page, root)).length > 0
    } catch {
      return false
    }
  })

/** The page of each clause, such as `http.6`: the bold number that begins its paragraph is its anchor. */
const CLAUSE = /^\*\*([a-z]+\.\d+(?:, [a-z]+\.\d+)*)\*\*/gm
const homes = new Map(
  [...pagesOf('docs/'), ...pagesOf('docs/guide/')].flatMap(({ link }) =>
    [...readFileSync(new URL(`.${link}.md`, root), 'utf8').matchAll(CLAUSE)].flatMap(([, ids = '']) =>
      ids.split(', ').map((id): [string, string] => [id, `${link}#${id}`])
    )
  )
)

/** A text of a page of docs: bold numbers become anchors, all others lead to their clause. */
const withClauses = (html: string, isBold: boolean): string =>
  html.replace(/\b[a-z]+\.\d+\b/g, (id) => {
    const home = homes.get(id)
    if (home === undefined) return id
    return isBold ? `<span id="${id}">${id}</span>` : `<a href="${home}">${id}</a>`
  })

export default defineConfig({
  title: 'svc',
  description: 'One verified copy of every model on this machine, for all tools that run models',
  lang: 'en',
  srcDir: '..',
  srcExclude: [
    '**/node_modules/**',
    '**/dist/**',
    '.changeset/**',
    '.github/**',
    '**/CHANGELOG.md',
    'bench/**',
    'vectors/corpora/**'
  ],
  rewrites: { 'README.md': 'index.md' },
  outDir: '.vitepress/dist',
  cacheDir: '../node_modules/.cache/vitepress',
  cleanUrls: true,
  // a link that leads nowhere fails the build; those to files that are no pages are checked by a test of the repository.
  ignoreDeadLinks: [
    /\.(?:json|ts|py|toml|service|socket)$/,
    /\/LICENSE$/,
    /^(?:\.\/|\.\.\/)*(?:packages|bench|vectors|systemd|\.changeset|scripts)\/[^.]*$/
  ],
  // `/v1/jobs/{id}` in a heading is a path, and no attribute of the heading.
  markdown: {
    attrs: { disable: true },
    config: (md) => {
      const render = md.renderer.rules.text
      md.renderer.rules.text = (tokens, i, options, env, self) => {
        const html = render?.(tokens, i, options, env, self) ?? ''
        const before = tokens[i - 1]?.type
        const isPage = String(env.relativePath).startsWith('docs/')
        return isPage && before !== 'link_open' ? withClauses(html, before === 'strong_open') : html
      }
    }
  },
  themeConfig: {
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          searchOptions: {
            // who looks for "adopt" wants to do it; the reference names everything, and more often
            boostDocument: (id: string) => (id.includes('/docs/guide/') ? 6 : 1)
          }
        }
      }
    },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/docs/guide/getting-started' },
      { text: 'Guides', link: '/docs/guide/llama-cpp' },
      { text: 'Reference', link: '/docs/api' }
    ],
    sidebar: [
      { text: 'Start', items: [item('docs/guide/getting-started.md'), item('docs/guide/concepts.md')] },
      {
        text: 'Guides',
        items: pagesOf('docs/guide/').filter(({ link }) => !/getting-started|concepts/.test(link))
      },
      { text: 'Reference', items: pagesOf('docs/') },
      { text: 'Libraries', collapsed: true, items: packages.map(item) },
      { text: 'Contributing', items: ['CONTRIBUTING.md', 'ARCHITECTURE.md', 'SECURITY.md'].map(item) }
    ]
  }
})
