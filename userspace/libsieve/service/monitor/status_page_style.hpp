// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The status page's style sheet.
#pragma once

#include "libsieve/service/monitor/html.hpp"

namespace sieve::service::watching {

inline constexpr Markup status_page_style = R"css(
:root {
  color-scheme: light dark;
  --page: #f4f6f8; --card: #fff; --line: #e3e8ee; --ink: #17202b; --soft: #5b6878; --faint: #8a96a5;
  --accent: #0f6fde; --pass: #3b8ee6; --pass-line: #1c6fc9; --drop: #e8590c; --redirect: #8b5cf6;
  --good: #16794a; --good-bg: #e5f6ec; --warn: #8a5a00; --warn-bg: #fff3d6; --warn-line: #f0b429;
  --bad: #b42318; --bad-bg: #fdeceb; --bad-line: #e5484d; --track: #e9edf2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0d1218; --card: #151c25; --line: #263140; --ink: #e4eaf1; --soft: #9fadbd; --faint: #74828f;
    --accent: #6cb2ff; --pass: #3b82d6; --pass-line: #6cb2ff; --drop: #ff7a33; --redirect: #a78bfa;
    --good: #4cc38a; --good-bg: #11291e; --warn: #f5c451; --warn-bg: #2b2210; --warn-line: #b98a1c;
    --bad: #ff8f87; --bad-bg: #341816; --bad-line: #d9423c; --track: #222c38;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; }
main, header, footer { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 14px; padding-top: 22px; padding-bottom: 14px; }
h1 { font-size: 22px; letter-spacing: -.01em; margin: 0; font-weight: 700; }
h1 svg { width: 20px; height: 20px; vertical-align: -3px; margin-right: 8px; }
h2 { font-size: 17px; margin: 0; font-weight: 650; }
h3 { font-size: 12px; margin: 0 0 8px; font-weight: 600; color: var(--soft); text-transform: uppercase; letter-spacing: .05em; }
.host { color: var(--soft); overflow-wrap: anywhere; }
.when { margin-left: auto; color: var(--faint); font-size: 13px; }
.pill { display: inline-block; padding: 1px 9px; border-radius: 99px; font-size: 12.5px; font-weight: 600;
  background: var(--track); color: var(--soft); white-space: nowrap; }
.pill.good { background: var(--good-bg); color: var(--good); }
.pill.warn { background: var(--warn-bg); color: var(--warn); }
.pill.bad { background: var(--bad-bg); color: var(--bad); }
.pill.drop { background: color-mix(in srgb, var(--drop) 15%, transparent); color: var(--drop); }
.pill.pass { background: color-mix(in srgb, var(--pass) 17%, transparent); color: var(--pass-line); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; margin: 0 0 16px; overflow: hidden; }
.card > .head { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 10px; padding: 14px 18px 0; }
.card > .body { padding: 14px 18px 16px; }
.card > .head.only { padding-bottom: 14px; }
.head .more { margin-left: auto; color: var(--soft); font-size: 13px; }
.notice { border-radius: 12px; padding: 12px 18px; margin: 0 0 16px; border: 1px solid var(--line); }
.notice.good { background: var(--good-bg); color: var(--good); border-color: transparent; font-weight: 600; }
.notice ul { list-style: none; margin: 0; padding: 0; }
.notice.list { padding: 0; background: var(--card); overflow: hidden; }
.notice li { padding: 11px 18px; border-left: 5px solid var(--warn-line); background: var(--warn-bg); }
.notice li + li { border-top: 1px solid var(--card); }
.notice li.failure { border-left-color: var(--bad-line); background: var(--bad-bg); }
.notice b { color: var(--warn); margin-right: 6px; overflow-wrap: anywhere; }
.notice li.failure b { color: var(--bad); }
.notice span { overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 0 0 16px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 12px 16px 11px; }
.tile .name { color: var(--soft); font-size: 13px; }
.tile .value { font-size: 25px; line-height: 1.25; font-weight: 680; letter-spacing: -.02em; font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile .value small { font-size: 14px; font-weight: 500; color: var(--soft); letter-spacing: 0; }
.tile .note { color: var(--faint); font-size: 12.5px; }
.plot { display: grid; grid-template-columns: auto 1fr; grid-template-rows: 150px auto; gap: 4px 8px; }
.plot .scale { display: flex; flex-direction: column; justify-content: space-between; text-align: right;
  color: var(--faint); font-size: 11.5px; line-height: 1; font-variant-numeric: tabular-nums; margin: -5px 0; }
.plot .area { position: relative; border-bottom: 1px solid var(--line); min-width: 0; }
.plot .area > svg { position: absolute; inset: 0; width: 100%; height: 100%; display: block; }
.plot .times { grid-column: 2; display: flex; justify-content: space-between; color: var(--faint); font-size: 11.5px; line-height: 1.2; }
.nothing { position: absolute; inset: 0; display: grid; place-items: center; color: var(--faint); font-size: 13px; text-align: center; }
.nothing span { background: var(--card); padding: 0 10px; }
svg .grid { stroke: var(--line); stroke-width: 1; fill: none; vector-effect: non-scaling-stroke; }
svg .pass { fill: var(--pass); fill-opacity: .28; } svg .drop { fill: var(--drop); fill-opacity: .8; }
svg .redirect { fill: var(--redirect); fill-opacity: .5; }
svg .line { fill: none; stroke-width: 1.5; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
svg .line.pass { stroke: var(--pass-line); } svg .line.drop { stroke: var(--drop); } svg .line.redirect { stroke: var(--redirect); }
svg.spark { width: 96px; height: 24px; display: block; }
svg.spark path { fill: none; stroke: var(--accent); stroke-width: 1.5; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 10px 0 0; padding: 0; list-style: none; font-size: 13.5px; }
.legend .key { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 7px; background: var(--faint); }
.legend .key.pass { background: var(--pass); } .legend .key.drop { background: var(--drop); } .legend .key.redirect { background: var(--redirect); }
.legend b { font-variant-numeric: tabular-nums; font-weight: 620; } .legend span { color: var(--soft); }
.wide { overflow-x: auto; border-top: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-size: 12px; font-weight: 600; color: var(--soft); padding: 9px 10px 7px; white-space: nowrap; vertical-align: bottom; }
td { padding: 8px 10px; border-top: 1px solid var(--line); vertical-align: middle; }
th:first-child, td:first-child { padding-left: 18px; } th:last-child, td:last-child { padding-right: 18px; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td .sub, .sub { display: block; color: var(--faint); font-size: 12.5px; line-height: 1.35; }
td.name { font-weight: 620; overflow-wrap: anywhere; min-width: 190px; } td.name .sub { font-weight: 400; }
td.say { min-width: 200px; overflow-wrap: anywhere; }
td.long { width: 34%; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 18px 32px; padding: 14px 18px 16px; border-top: 1px solid var(--line); }
.pair.one { grid-template-columns: 1fr; }
.bars { display: grid; grid-template-columns: minmax(90px, auto) 1fr auto; gap: 5px 12px; align-items: center; font-size: 13.5px; margin: 0; }
.bars dt { overflow-wrap: anywhere; } .bars dd { margin: 0; }
.bars .bar svg { display: block; width: 100%; height: 8px; border-radius: 4px; background: var(--track); }
.bars .bar rect { fill: var(--pass); } .bars .bar.bad rect { fill: var(--drop); } .bars .bar.top rect { fill: var(--redirect); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px 24px; margin: 0; }
.facts dt { color: var(--soft); font-size: 13px; } .facts dd { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.empty { text-align: center; padding: 46px 20px; color: var(--soft); }
.empty h2 { color: var(--ink); margin-bottom: 6px; }
code { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; background: var(--track); padding: 1px 6px; border-radius: 5px; }
footer { color: var(--faint); font-size: 13px; padding-top: 4px; padding-bottom: 30px; display: flex; flex-wrap: wrap; gap: 4px 18px; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
@media (max-width: 760px) {
  main, header, footer { padding-left: 12px; padding-right: 12px; }
  .when { margin-left: 0; width: 100%; }
  .tiles { grid-template-columns: 1fr 1fr; gap: 10px; } .tile .value { font-size: 22px; }
  .card > .head, .card > .body, .pair { padding-left: 14px; padding-right: 14px; }
  .head .more { margin-left: 0; width: 100%; } .plot { grid-template-rows: 120px auto; } .pair { grid-template-columns: 1fr; }
  .wide { overflow: visible; } table, tbody, tr, td { display: block; } thead { display: none; }
  tr { padding: 10px 14px; border-top: 1px solid var(--line); display: grid; grid-template-columns: 1fr 1fr; gap: 6px 16px; }
  tbody tr:first-child { border-top: 0; }
  td, td:first-child, td:last-child { border: 0; padding: 0; text-align: left; min-width: 0; }
  td::before { content: attr(data-label); display: block; color: var(--soft); font-size: 12px; }
  td.name, td.say { grid-column: 1 / -1; } td.name::before { display: none; } td.name { font-size: 15.5px; }
  td.n { white-space: normal; text-align: left; } td.long { width: auto; }
}
)css";

} // namespace sieve::service::watching
