import { defineConfig } from 'tsup'
import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default [
  // built at the same time: neither may take the other's files away.
  library({ index: 'src/index.ts' }, { clean: ['!page/**', '!THIRD-PARTY-LICENSES'] }),
  defineConfig({
    entry: { app: 'src/app.tsx', page: 'src/styles/page.css' },
    outDir: 'dist/page',
    publicDir: 'src/static',
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: true,
    clean: true,
    ...bundling({ packages: ['preact', '@preact/signals', 'uqr'] })
  })
]
