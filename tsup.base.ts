import { defineConfig, type Options } from 'tsup'

/** ESM for the oldest Node that we support; declarations come from tsc (see CONTRIBUTING.md). */
export const library = (entry: Record<string, string>, more: Options = {}) =>
  defineConfig({
    entry,
    format: 'esm',
    target: 'node22',
    platform: 'node',
    sourcemap: true,
    clean: true,
    splitting: true,
    dts: false,
    // Private packages of the workspace: nobody can install them, so their users carry them.
    noExternal: [/^@svc\/internal-/],
    ...more
  })
