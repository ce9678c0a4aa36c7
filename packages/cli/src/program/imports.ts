import { type Command, Option } from 'commander'
import {
  ALL,
  ALLOW_PICKLE,
  AUX,
  type CommandTools,
  EVICT,
  imported,
  list,
  OPAQUE,
  PEER,
  PLAIN_HTTP,
  PRIVATE,
  QUANT
} from './tools.ts'

/** Takes files as they are, whatever they are. */
const asTheyAre = (command: Command): Command => command.addOption(OPAQUE).addOption(ALLOW_PICKLE)

/** Of every import. */
const ofEach = (command: Command): Command =>
  command
    .option('-d, --detach', 'do not wait; print the job id')
    .option('--replace', 'take over the name if another model has it')
    .addOption(EVICT)

/** Of a repository of the hub. */
const ofHub = (command: Command): Command =>
  imported(command, 'another name to keep it under')
    .option('--revision <rev>', 'a branch, tag or commit instead of the default branch')
    .addOption(AUX)
    .addOption(ALL)
    .option('--dry-run', 'only show what it would fetch, store and skip')

export function addImportCommands({ add, group, run }: CommandTools): void {
  const imports = group('import', 'import a model from files, the hub, a swarm, the catalog or a registry')
  const importSource = run('importSource', 'importSource')
  ofHub(asTheyAre(ofEach(imports)))
    .argument('[source]', 'org/name:quant, a URL of the hub, the address of what svc publish wrote, or a path')
    .action((source: string | undefined, options, command: Command) =>
      source === undefined ? command.help() : importSource(source, options, command)
    )
  const addImport = (nameAndArgs: string, description: string): Command =>
    ofEach(add(nameAndArgs, description, imports))
  imported(
    asTheyAre(addImport('local <path...>', 'import files and folders of this machine')),
    'the name to keep it under'
  )
    .addOption(AUX)
    .addOption(QUANT)
    .addOption(
      new Option(
        '--companions <which>',
        'companion files to share with the model: those that loaders read (default), or all'
      ).choices(['loaders', 'all'])
    )
    .option('--one-model', 'import a folder as one model, even if it holds several repositories')
    .action(run('imports', 'importLocal'))
  ofHub(asTheyAre(addImport('hf <org/name[:quant,...]>', 'import a repository of the hub at one commit'))).action(
    run('imports', 'importHf')
  )
  asTheyAre(addImport('bt <magnet|infohash>', 'import a model that another machine shares, verified by its digest'))
    .option('--pin <digest>', 'the expected digest of the manifest; required')
    .option('--companions <digest@infohash>', 'the pin and the torrent of the companion files')
    .option('--as <ns/name>', 'a name to keep it under')
    .addOption(PRIVATE)
    .option('--webseed <url>', 'a web server that serves the files; repeatable', list)
    .option('--tracker <url>', 'a tracker to ask for peers; repeatable', list)
    .addOption(PEER)
    .action(run('imports', 'importBt'))
  const ofCatalog = addImport(
    'catalog <owner/name[:quant,...]>',
    'import from the community catalog, verified against the hub'
  )
  imported(ofCatalog, 'another name to keep it under')
    .addOption(AUX)
    .addOption(QUANT)
    .addOption(ALL)
    .option('--trust-catalog', "trust the catalog's own record when the hub no longer has the model")
    .addOption(PEER)
    .action(run('catalog', 'importCatalog'))
  const ofOci = asTheyAre(
    addImport('oci <source>', 'import from an OCI image layout (a folder, a .tar) or a registry: registry/name:tag')
  )
  imported(ofOci, 'the name to keep it under; default: that of the model, if you packed it')
    .option('--tag <tag>', 'import only this model of a layout; default: all of them')
    .addOption(QUANT)
    .addOption(PLAIN_HTTP)
    .action(run('oci', 'importOci'))
  const ofOllama = addImport('ollama <model[:tag]>', "import from Ollama's registry, or another that Ollama pulls from")
  imported(ofOllama, 'another name to keep it under').addOption(PLAIN_HTTP).action(run('oci', 'importOllama'))
}
