import type { Command } from 'commander'
import type { CommandTools } from './keep.ts'

/** The commands that export models: `export`, `push`. */
export function addPassOnCommands(program: Command, { add, group, run }: CommandTools): void {
  const exports = group('export', 'write models out, for other machines and tools')
  add(
    exports,
    'oci <ref...>',
    'as an OCI image layout; the last word is the place: a folder, or a file that ends in .tar'
  )
    .option('--image', 'an ordinary image with the files below models/, for runtimes that mount no artifacts')
    .option('--withheld', 'also what is private, or came from a repository that asks for access')
    .action(async (words: string[], options, command: Command) =>
      run(command, async (session) => (await import('./oci.ts')).exportOci(session, words, options))
    )
  add(program, 'push <ref> <image>', 'send a model to a registry: registry/name[:tag]; without a tag it is the quant')
    .option('--image', 'an ordinary image with the files below models/, for runtimes that mount no artifacts')
    .option('--mount-from <name>', 'a repository of that registry that has the files already')
    .option('--plain-http', 'without TLS, as it is done with registries on this machine')
    .option('--withheld', 'also what is private, or came from a repository that asks for access')
    .action(async (ref: string, image: string, options, command: Command) =>
      run(command, async (session) => (await import('./oci.ts')).push(session, ref, image, options))
    )
}
