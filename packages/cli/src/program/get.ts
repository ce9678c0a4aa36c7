import { Option } from 'commander'
import { addImportCommands } from './imports.ts'
import { type CommandTools, EVICT, FORCE } from './tools.ts'

export function addGetCommands(tools: CommandTools): void {
  const { add, group, run } = tools
  add('search <words...>', 'search the hub for models')
    .option('--gguf', 'only repositories with GGUF files')
    .option('--safetensors', 'only repositories with safetensors')
    .option('--size <range>', 'number of parameters: 1B-8B, -8B or 70B-')
    .option('--license <name>', 'licence, as the hub names it: apache-2.0')
    .option('--limit <n>', 'repositories per page, at most 100 (default 20)')
    .option('--page <n>', 'page number')
    .option('--catalog', 'search the community catalog instead')
    .option('--here', 'search the models in the store instead')
    .addOption(new Option('--format <format>', 'output format').choices(['table', 'json', 'ids']))
    .action(run('search', 'search'))
  addImportCommands(tools)
  const catalog = group('catalog', 'the community catalog of torrents')
  add('search <terms...>', 'search the catalog for models', catalog).action(run('catalog', 'catalogSearch'))
  add('adopt [path...]', 'import models of other tools: hf, ollama, lmstudio, llama, dmr, ramalama, or a folder')
    .option('--dry-run', 'only show the models and the space they need')
    .option('--move', 'remove the original weights once the store has them')
    .addOption(new Option('--watch', 'go on with what other tools download, until Ctrl-C').conflicts('dryRun'))
    .option('--replace', 'take over names that other models have')
    .option('-y, --yes', 'do not ask for confirmation')
    .addOption(
      new Option('--share', 'share own models, and those that the hub gives to everybody').conflicts('private')
    )
    .option('--private', 'keep the models private, as where nobody says that they may be shared')
    .option('--keep-names', 'keep file names as they are, upper case included')
    .addOption(FORCE)
    .action(run('adopt', 'adopt'))
  add('pull <ref>', 'fetch the missing files of a model; import it from the hub if it is not here')
    .option(
      '--wait <time>',
      'import again from the hub if no peer sends anything for this long: 30s, 10m (default 15s)'
    )
    .addOption(EVICT)
    .addOption(FORCE)
    .action(run('jobs', 'pull'))
  add('outdated [ref...]', 'ask the hub for newer commits of the models here').action(run('newer', 'outdated'))
  add('upgrade [ref...]', 'import newer commits of models; a tag keeps the older version')
    .option('--all', 'upgrade every model that has a newer commit')
    .option('--dry-run', 'only show what it would fetch')
    .option('--replace', 'upgrade even if the hub has renamed the repository')
    .addOption(EVICT)
    .action(run('newer', 'upgrade'))
  add('companions <ref>', 'fetch companion files of a model from the hub if its import did not').action(
    run('jobs', 'companions')
  )
}
