"""Addresses of the pages about models, runs and what they deliver."""

from django.urls import path

from routing.by_people import views as by_people
from routing.delivery import views as deliveries
from routing.held_out import views as held_out
from routing.items import views as items
from routing.label_set import views as label_set
from routing.overview import views as overview
from routing.progress import views as progress
from routing.rounds import views as rounds
from routing.runs import (
    commitment_views as commitments,
    expert_views as experts,
    plan_views as plan,
    views as runs,
)
from routing.sample import views as samples
from routing.sources import health_views as health, prompts_views as prompts, sent_views, views as sources
from routing.workshop import views as workshop

urlpatterns = [
    path("glossary/", runs.glossary, name="glossary"),
    path("projects/new/sample/", samples.project_sample, name="project_sample"),
    path("projects/<slug:slug>/", overview.overview, name="overview"),
    path("projects/<slug:slug>/progress/", progress.progress, name="progress"),
    path("projects/<slug:slug>/items/", items.items, name="items"),
    path("projects/<slug:slug>/items/views/", items.items_views, name="items_views"),
    path("projects/<slug:slug>/items/views/<row:view_id>/", items.items_view, name="items_view"),
    path("projects/<slug:slug>/items/change/", items.items_change, name="items_change"),
    path("projects/<slug:slug>/items/changes/<row:job_id>/", items.items_changed, name="items_changed"),
    path(
        "projects/<slug:slug>/items/changes/<row:job_id>/undo/",
        items.items_change_undo,
        name="items_change_undo",
    ),
    path("projects/<slug:slug>/items/<row:item_id>/", items.item, name="item"),
    path("projects/<slug:slug>/items/<row:item_id>/erase/", items.item_erase, name="item_erase"),
    path("projects/<slug:slug>/items/<row:item_id>/correct/", items.item_correct, name="item_correct"),
    path("projects/<slug:slug>/items/<row:item_id>/comment/", items.item_comment, name="item_comment"),
    path(
        "projects/<slug:slug>/items/<row:item_id>/flags/<row:comment_id>/resolve/",
        items.item_flag_resolve,
        name="item_flag_resolve",
    ),
    path("projects/<slug:slug>/held-out/", held_out.held_out, name="held_out"),
    path("projects/<slug:slug>/held-out/settings/", held_out.held_out_settings, name="held_out_settings"),
    path("projects/<slug:slug>/held-out/<row:held_id>/", held_out.held_out_answer, name="held_out_answer"),
    path(
        "projects/<slug:slug>/held-out/<row:held_id>/release/",
        held_out.held_out_release,
        name="held_out_release",
    ),
    path("projects/<slug:slug>/held-out/resume/<row:user_id>/", held_out.resume_person, name="person_resume"),
    path("projects/<slug:slug>/rounds/", rounds.rounds, name="rounds"),
    path("projects/<slug:slug>/rounds/<row:number>/", rounds.round_page, name="round"),
    path("projects/<slug:slug>/rounds/<row:number>/close/", rounds.round_close, name="round_close"),
    path(
        "projects/<slug:slug>/rounds/<row:number>/items/<row:item_id>/", rounds.round_note, name="round_note"
    ),
    path("projects/<slug:slug>/labels/", label_set.label_set, name="label_set"),
    path("projects/<slug:slug>/labels/choose/", label_set.label_set_choose, name="label_set_choose"),
    path("projects/<slug:slug>/sources/", sources.sources, name="sources"),
    path("projects/<slug:slug>/sources/suggested/", sources.source_suggested, name="source_suggested"),
    path("projects/<slug:slug>/sources/new/", sources.source_new, name="source_new"),
    path("projects/<slug:slug>/sources/<row:source_id>/", sources.source_edit, name="source_edit"),
    path("projects/<slug:slug>/sources/<row:source_id>/delete/", sources.source_delete, name="source_delete"),
    path("projects/<slug:slug>/sources/<row:source_id>/health/", health.source_health, name="source_health"),
    path("projects/<slug:slug>/sources/<row:source_id>/mends/", health.source_mends, name="source_mends"),
    path("projects/<slug:slug>/sources/<row:source_id>/move/", sources.source_move, name="source_move"),
    path("projects/<slug:slug>/sources/<row:source_id>/prompt/", prompts.source_prompt, name="source_prompt"),
    path(
        "projects/<slug:slug>/sources/<row:source_id>/predictions/",
        sent_views.source_predictions,
        name="source_predictions",
    ),
    path("projects/<slug:slug>/sources/<row:source_id>/try/", prompts.source_try, name="source_try"),
    path(
        "projects/<slug:slug>/sources/<row:source_id>/try/price/",
        prompts.source_try_price,
        name="source_try_price",
    ),
    path("projects/<slug:slug>/sources/<row:source_id>/prompts/", workshop.candidates, name="candidates"),
    path(
        "projects/<slug:slug>/sources/<row:source_id>/prompts/rounds/",
        workshop.candidates_rounds,
        name="candidates_rounds",
    ),
    path(
        "projects/<slug:slug>/sources/<row:source_id>/prompts/label/",
        workshop.candidates_label,
        name="candidates_label",
    ),
    path(
        "projects/<slug:slug>/sources/<row:source_id>/prompts/new/",
        workshop.candidate_new,
        name="candidate_new",
    ),
    path(
        "projects/<slug:slug>/sources/<row:source_id>/prompts/<row:number>/",
        workshop.candidate,
        name="candidate",
    ),
    path(
        "projects/<slug:slug>/sources/<row:source_id>/prompts/<row:number>/use/",
        workshop.candidate_use,
        name="candidate_use",
    ),
    path("projects/<slug:slug>/prices/", sources.prices, name="prices"),
    path("projects/<slug:slug>/prices/<row:price_id>/", sources.price_edit, name="price_edit"),
    path("projects/<slug:slug>/prices/<row:price_id>/delete/", sources.price_delete, name="price_delete"),
    path("projects/<slug:slug>/plan/", plan.plan, name="plan"),
    path("projects/<slug:slug>/plan/outlook/", plan.plan_outlook, name="plan_outlook"),
    path("projects/<slug:slug>/people-run/", by_people.people_run, name="people_run"),
    path("projects/<slug:slug>/runs/", runs.runs, name="runs"),
    path("projects/<slug:slug>/runs/<row:number>/", runs.run, name="run"),
    path("projects/<slug:slug>/runs/<row:number>/evidence/", runs.run_evidence, name="run_evidence"),
    path("projects/<slug:slug>/runs/<row:number>/plan/", runs.run_plan, name="run_plan"),
    path("projects/<slug:slug>/runs/<row:number>/analyse/", runs.run_analyse, name="run_analyse"),
    path("projects/<slug:slug>/runs/<row:number>/ask-losses/", runs.run_ask_losses, name="run_ask_losses"),
    path("projects/<slug:slug>/runs/<row:number>/ask-expert/", experts.run_ask_expert, name="run_ask_expert"),
    path("projects/<slug:slug>/runs/<row:number>/hand-over/", experts.run_hand_over, name="run_hand_over"),
    path(
        "projects/<slug:slug>/runs/<row:number>/final-audit/",
        experts.run_final_audit,
        name="run_final_audit",
    ),
    path(
        "projects/<slug:slug>/runs/<row:number>/analyse-final-audit/",
        experts.run_analyse_final_audit,
        name="run_analyse_final_audit",
    ),
    path(
        "projects/<slug:slug>/runs/<row:number>/final_audit.json",
        experts.run_final_certificate,
        name="run_final_certificate",
    ),
    path("projects/<slug:slug>/runs/<row:number>/route/", runs.run_route, name="run_route"),
    path("projects/<slug:slug>/runs/<row:number>/take-in/", runs.run_take_in, name="run_take_in"),
    path("projects/<slug:slug>/runs/<row:number>/order/", runs.run_order, name="run_order"),
    path("projects/<slug:slug>/runs/<row:number>/cancel/", runs.run_cancel, name="run_cancel"),
    path("projects/<slug:slug>/runs/<row:number>/budget/", runs.run_budget, name="run_budget"),
    path(
        "projects/<slug:slug>/runs/<row:number>/accept-unusable/",
        runs.run_accept_unusable,
        name="run_accept_unusable",
    ),
    path("projects/<slug:slug>/runs/<row:number>/deliver/", deliveries.run_deliver, name="run_deliver"),
    path(
        "projects/<slug:slug>/runs/<row:number>/certificate.json",
        runs.run_certificate,
        name="run_certificate",
    ),
    path(
        "projects/<slug:slug>/runs/<row:number>/certificate/",
        runs.run_certificate_page,
        name="run_certificate_page",
    ),
    path("projects/<slug:slug>/runs/<row:number>/draw.jsonl", runs.run_draw, name="run_draw"),
    path("projects/<slug:slug>/runs/<row:number>/draw/", commitments.run_draw_value, name="run_draw_value"),
    path(
        "projects/<slug:slug>/runs/<row:number>/commitment-<row:which>.json",
        commitments.run_commitment,
        name="run_commitment",
    ),
    path("projects/<slug:slug>/deliveries/", deliveries.deliveries, name="deliveries"),
    path(
        "projects/<slug:slug>/deliveries/<row:delivery_id>.zip", deliveries.delivery_zip, name="delivery_zip"
    ),
    path(
        "projects/<slug:slug>/deliveries/<row:delivery_id>/export/",
        deliveries.delivery_export,
        name="delivery_export",
    ),
    path(
        "projects/<slug:slug>/deliveries/<row:delivery_id>/<path:name>",
        deliveries.delivery_file,
        name="delivery_file",
    ),
]
