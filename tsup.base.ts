import { defineConfig, type Options } from 'tsup'

type Entry = Record<string, string>

const options = (entry: Entry, more: Options): Options => ({
  entry,
  format: 'esm',
  target: 'node22',
  platform: 'node',
  sourcemap: true,
  clean: true,
  splitting: true,
  dts: false,
  // private packages of the workspace: nobody can install them, so their users carry them.
  noExternal: [/^@svc\/internal-/],
  ...more
})

/** ESM for the oldest Node that we support; declarations come from tsc (see CONTRIBUTING.md). */
export const library = (entry: Entry, more: Options = {}) => defineConfig(options(entry, more))

/**
 * A library some of whose files run in threads. Each of these is one file with what it uses of other packages: a thread reads, parses
 * and links all of its modules at each start, which took a third of the CPU of a start with seven of them.
 */
export const libraryWithThreads = (entry: Entry, threads: Entry, more: Options = {}) =>
  defineConfig([
    // both are built at the same time: neither may take the other's files away.
    { ...options(entry, more), clean: Object.keys(threads).map((name) => `!${name}.js*`) },
    options(threads, {
      clean: false,
      splitting: false,
      noExternal: [/^@svc\//],
      // from the sources of other packages, file by file, so that what is not used stays out.
      esbuildOptions: (esbuild) => {
        esbuild.conditions = ['svc-source']
      }
    })
  ])
