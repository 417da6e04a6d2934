/* Shows what the doctor found, as text and as JSON. */
#include "cli/cli.h"

void cli_findings_print(FILE *file, const bw_findings *findings)
{
    bw_finding finding;
    for (int i = 0; bw_findings_at(findings, i, &finding); i++) {
        fprintf(file, "%s%s: %s\n", i > 0 ? "\n" : "", bw_severity_name(finding.severity), finding.id);
        fprintf(file, "  found  %s\n", finding.evidence);
        fprintf(file, "  why    %s\n", finding.reason);
        fprintf(file, "  fix    %s\n", finding.fix);
    }
    if (bw_findings_count(findings) == 0) {
        fputs("nothing was found to be wrong\n", file);
    }
}

void cli_findings_line(FILE *file, const bw_findings *findings)
{
    bw_finding finding;
    if (bw_findings_at(findings, 0, &finding)) {
        fprintf(file, "%s: %s: %s; fix: %s ('batchwise doctor' with the same options tells more)\n",
                bw_severity_name(finding.severity), finding.id, finding.evidence, finding.fix);
    }
}

static void put_finding(cli_json *json, const char *key, const bw_finding *finding)
{
    cli_json_object(json, key);
    cli_json_text(json, "id", finding->id);
    cli_json_text(json, "severity", bw_severity_name(finding->severity));
    cli_json_text(json, "evidence", finding->evidence);
    cli_json_text(json, "reason", finding->reason);
    cli_json_text(json, "fix", finding->fix);
    cli_json_text(json, "code", finding->code[0] ? finding->code : NULL);
    cli_json_object_end(json);
}

void cli_finding_json(cli_json *json, const char *key, const bw_findings *findings)
{
    bw_finding finding;
    if (bw_findings_at(findings, 0, &finding)) {
        put_finding(json, key, &finding);
    } else {
        cli_json_text(json, key, NULL);
    }
}

void cli_findings_json(cli_json *json, const char *key, const bw_findings *findings)
{
    bw_finding finding;
    cli_json_array(json, key);
    for (int i = 0; bw_findings_at(findings, i, &finding); i++) {
        put_finding(json, NULL, &finding);
    }
    cli_json_array_end(json);
}
